#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Every allocation fails, one place at a time.

 - each call of the module that may allocate (sites.py), in whatever context it
   runs: once, some times in a row, and each of several in one place by itself,
   while jobs live from beginning to end
 - each allocation of each call that a process makes, also those that others
   make on its behalf, until it finds nothing more to fail
 - each allocation of loading the module

What was asked for is refused with an errno, or what is lost is counted; the same
jobs go on, their sums are right, and nothing is left.
"""
import errno
import os
import resource
import select
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../lib"))
from atptest import (GET, J_ID, J_SERVER, JOINED, SET,  # noqa: E402
                     SOCK_GET, TOP, Info, Netlink, Refused, attr, join, main,
                     new_net, same, sock, sum_works, test, tests, wait_for)
import failing  # noqa: E402
import probing  # noqa: E402
from kmod import load, load_now, loaded, unload  # noqa: E402
from life import (NO_MEMORY, PATIENT, SERVER, Life, begin, bind,  # noqa: E402
                  connect, error_of_run, setsockopt)
from sites import LOADING, sites  # noqa: E402
from symbols import here, text_of, text_of_module  # noqa: E402

# A kernel with fault injection has it all by itself.
FAULTS = failing if failing.available() else probing

JOB, OTHER = 7, 8
# in a row: more than any place tries, which is two orders of pages at each of
# two attempts
ROW = 9

# Calls that also fail after so many that have not: the PS of the first job has
# four ranks, and must take back what it has for two of them.
LATER = {("atp_ps_start", "dst_cache_init"): 2}

# Calls that cannot be failed each by itself
NOT_ALONE = {
    # the second is there for a failure of the first; in a row both fail
    ("atp_burst_room", "__netdev_alloc_frag_align"),
    # IPv6 keeps a route per CPU: by chance none of the calls needs a new one
    ("atp_route6", "ipv6_dst_lookup_flow"),
    # one in the source, whose copies differ in what was so before
    ("atp_sk_update", "sock_wake_async"),
}

# How a failure shows: "refused" with an errno, "explained" by netlink, by a
# counter, by an "overrun" of who listens to events; or not at all, and why that
# is right.
EFFECTS = {
    ("atp_create", "sk_alloc"): "refused",
    ("atp_push_alloc", "kmalloc_trace"): "refused",
    ("atp_alloc", "kvmalloc_node"): "refused",
    ("atp_alloc", "__vmalloc"): "refused",
    ("atp_pin_chunk", "pin_user_pages_fast"): "refused",
    ("atp_path_mtu", "ip_route_output_flow"): "refused",
    ("atp_job_alloc", "kmalloc_trace"): "refused",
    ("atp_ps_start", "kmalloc_trace"): "refused",
    ("atp_udp_open_one", "udp_sock_create4"): "refused",
    ("atp_udp_open_one", "udp_sock_create6"): "refused",
    ("atp_payer_open", "sock_create_kern"): "refused",
    ("atp_net_init", "__alloc_percpu_gfp"): "refused",
    ("atp_job_alloc", "__alloc_percpu_gfp"): "refused",
    ("atp_ps_start", "dst_cache_init"): "refused",
    ("atp_sk_bind", "dst_cache_init"): "refused",
    ("atp_nl_job_get_doit", "__alloc_skb"): "explained",
    ("atp_nl_family_get_doit", "__alloc_skb"): "explained",
    # of a socket that joins, or of packets
    ("atp_route6", "ipv6_dst_lookup_flow"): "refused out_errors",
    ("atp_xmit", "ip_route_output_flow"): "out_nomem",
    ("atp_xmit", "ip_local_out"): "out_errors",
    ("atp_xmit", "ip6_local_out"): "out_errors",
    ("atp_alloc_ctl", "__alloc_skb"): "out_nomem",
    ("atp_alloc_burst", "__alloc_skb"): "out_nomem",
    ("atp_burst_room", "__netdev_alloc_frag_align"): "out_nomem",
    ("atp_ps_build_one", "skb_page_frag_refill"): "out_nomem",
    ("atp_rcv_open", "nf_register_net_hooks"): "refused",
    ("atp_deliver", "skb_clone"): "drop_nomem",
    ("atp_rcv_one", "__pskb_pull_tail"): "drop_nomem",
    ("atp_errqueue_add", "__alloc_skb"): "errqueue_nomem",
    ("atp_event", "__alloc_skb"): "event_nomem",
    ("atp_event", "netlink_broadcast"): "overrun",
    # the signal comes without what it is about
    ("atp_sendmsg", "send_sig"): None,
    ("atp_write_space", "sock_wake_async"): None,
    ("sk_wake_async", "sock_wake_async"): None,
    ("atp_errqueue_add", "sock_queue_err_skb"): None,
    # a reply that cannot be made smaller is sent as it is
    ("atp_nl_family_get_doit", "netlink_unicast"): None,
}

# Not made to fail
EXCUSED = {
    ("atp_rcv_close", "nf_unregister_net_hooks"):
        "allocates a smaller table where there are other hooks, and if it "
        "cannot, netfilter keeps the larger one",
    ("atp_sk_fail", "sk_error_report"):
        "its signal is pending already, by the error queue",
    ("atp_nl_job_get_doit", "netlink_unicast"):
        "allocates only for a reply that is less than half full",
}

load()
MODULE = subprocess.run(["modinfo", "-n", "atp"], check=True, text=True,
                        capture_output=True).stdout.strip()
SITES = sites(MODULE)
BY_SITE = [s for s in SITES if s.callee not in LOADING and
           s.place not in EXCUSED]
FAULTS.prepare(MODULE)


def faults(site):
    """What fails there, each during a life of its own"""
    text = text_of_module()
    backs = sorted((text + first, text + last) for first, last in site.ranges)
    first, last = backs[0][0], backs[-1][1]
    yield FAULTS.at(site, first, last)
    yield FAULTS.at(site, first, last, ROW)
    if site.place in LATER:
        yield FAULTS.at(site, first, last, passed=LATER[site.place])
    if len(backs) > 1 and (site.function, site.callee) not in NOT_ALONE:
        for back in backs:
            yield FAULTS.at(site, *back)


# Call by call ---------------------------------------------------------------

def live_with(site):
    effects = set()
    for n, fault in enumerate(faults(site), 1):
        # each has namespaces of its own, where nothing is cached yet
        life = Life()
        with fault:
            life.live()
        same(fault.hit(), True, f"{site}: reached, fault {n}")
        life.go_on()
        effects |= life.effects
    print(f"# {site}: {' '.join(sorted(effects)) or 'nothing to see'}")
    want = EFFECTS[site.place]
    if site.callee not in ("sock_wake_async", "sock_queue_err_skb"):
        same("silent_signal" in effects, False, "a signal without its reason")
    if want:
        same(bool(effects & set(want.split())), True, f"{want} of {effects}")


def add_test(function, name):
    function.__name__ = name
    tests.append(function)


@test
def every_call_of_the_module_is_known():
    """sites.py has looked at each; here is what is done with them."""
    known = set(EFFECTS) | set(EXCUSED)
    there = {s.place for s in SITES}
    loading = {s.place for s in SITES if s.callee in LOADING}
    same(there - loading - known, set(), "what happens when it fails?")
    same(known - there, set(), "not in the module")
    print(f"# {len(SITES)} places in {len({s.function for s in SITES})} "
          f"functions; one by one {len(BY_SITE)}, with loading "
          f"{len(loading - set(EXCUSED))}, never {len(EXCUSED)}:")
    for (function, callee), why in EXCUSED.items():
        print(f"# {function} calls {callee}: {why}")


for one in BY_SITE:
    add_test(lambda s=one: live_with(s), str(one).replace(" ", "_"))


@test
def waking_a_reader():
    """Sockets do that through a pointer, so sites.py sees no call.  The signal comes
    without what it is about."""
    life = Life()
    with FAULTS.Below(*text_of("sock_def_readable")) as fault:
        life.live()
    same(fault.hit(), True, "reached")
    life.go_on()
    same("silent_signal" in life.effects, True, life.effects)


# Allocation by allocation ---------------------------------------------------

class Around:
    """A job that runs, and what is done beside it with each allocation failing."""
    def __init__(self):
        new_net()
        self.nl = Netlink()
        self.nl.add(JOB, more=PATIENT)
        self.nl.add(OTHER, more=PATIENT)
        self.socks = join(JOB)
        self.nth = FAULTS.Nth()

    def every(self, do, undo=lambda result: None, prepare=lambda: None,
              allocates=True):
        """@do gets what @prepare has made; @undo what @do has, None after an
        error.  Until nothing was left to fail.  If it has nothing that
        @allocates, only what it copies can.

        Once without a failure: what Python does the first time alone would be
        the first to fail, and the next one be passed over."""
        n = failures = 0
        undo(do(prepare()))
        while True:
            n += 1
            made = prepare()
            result = error = None
            self.nth.arm(n)
            try:
                result = do(made)
            except OSError as e:
                error = e
            hit = self.nth.hit()
            if error:
                same(hit and error.errno in NO_MEMORY + (errno.EFAULT,), True,
                     f"failure {n}, {'hit' if hit else 'not hit'}: {error}")
                failures += 1
            undo(result)
            sum_works(self.socks, 10)
            if not hit:
                break
        print(f"# {n - 1} failures, {failures} of them an errno")
        if allocates or FAULTS.COPIES_FAIL:
            same(failures > 0, True, "an errno")
        sum_works(self.socks, 20000)


@test
def each_allocation_of_a_new_socket():
    Around().every(lambda _: sock(), lambda s: s and s.close())


def joining(how):
    made = []

    def one():
        made.append(sock())
        return made[-1]

    Around().every(lambda s: how(s), lambda _: made.pop().close(), one)


@test
def each_allocation_of_joining():
    joining(lambda s: begin(s, OTHER, 0, setsockopt))


@test
def each_allocation_of_connecting():
    joining(lambda s: begin(s, OTHER, 0, connect))


@test
def each_allocation_of_binding():
    joining(lambda s: bind(s, OTHER, 0))


@test
def each_allocation_of_pushing_and_pulling():
    around = Around()
    one, two = around.socks
    chunk = struct.pack("3000i", *range(3000))
    want = struct.pack("3000i", *range(0, 6000, 2))

    def pushed(n):
        if n:
            two.send(chunk)
            same(one.recv(12000) + two.recv(12000), want * 2)

    around.every(lambda _: one.send(chunk), pushed)

    def complete():
        one.send(chunk)
        two.send(chunk)
        same(two.recv(12000), want)
        select.select([one], [], [])

    # one that could not be copied is there still
    around.every(lambda _: one.recv(12000),
                 lambda got: same(got or one.recv(12000), want), complete,
                 allocates=False)


@test
def each_allocation_of_serving():
    """The application at the PS pulls a sum, and pushes its result."""
    around = Around()
    around.nl.add(100, more=attr(J_SERVER, b"\1") + PATIENT)
    server = sock()
    begin(server, 100, SERVER, connect)
    ranks = join(100)
    wait_for(lambda: Info(server).state == JOINED, "joined")
    server.setblocking(True)
    # as long as a fragment, so that all of it is there at once
    chunk = struct.pack("350i", *range(350))
    want = struct.pack("350i", *range(0, 700, 2))
    result = chunk[::-1]

    def summed():
        for s in ranks:
            s.send(chunk)
        select.select([server], [], [])

    def answered(done):
        if not done:
            server.send(result)
        for s in ranks:
            same(s.recv(1400), result)

    def pulled(got):
        same(got or server.recv(1400), want)
        answered(None)

    around.every(lambda _: server.recv(1400), pulled, summed)
    around.every(lambda _: server.send(result), answered,
                 lambda: summed() or same(server.recv(1400), want))


@test
def each_allocation_of_polling():
    around = Around()
    poll = select.poll()
    for s in around.socks:
        poll.register(s, select.POLLOUT)
    around.every(lambda _: poll.poll(0), lambda got: got and same(len(got), 2),
                 allocates=False)


@test
def each_allocation_of_closing():
    around = Around()
    last = []

    def joined():
        last.append(sock())
        begin(last[0], OTHER, 0, setsockopt)

    # close() does not fail; so that something does, it is asked before
    around.every(lambda _: (Info(last[0]), last.pop().close()),
                 lambda done: [s.close() for s in last] and last.clear(), joined,
                 allocates=False)


@test
def each_allocation_of_reading_the_error_queue():
    around = Around()
    new = 100

    def failed():
        around.nl.add(new)
        s = sock()
        begin(s, new, 0, setsockopt)
        around.nl.delete(new)
        return s

    around.every(error_of_run, prepare=failed, allocates=False)


def asking(do, undo=lambda nl: None, prepare=lambda nl: None):
    """A reply may be lost, too, so whoever asks next does so anew."""
    around = Around()

    def undo_anew(_):
        undo(around.nl)

    around.every(do, undo_anew,
                 lambda: prepare(around.nl) or Netlink())


def gone(nl, job):
    try:
        nl.delete(job)
    except Refused as e:
        same(e.errno, errno.ENOENT)


@test
def each_allocation_of_adding_a_job():
    asking(lambda nl: nl.add(100, workers=["127.0.0.2"] * 3),
           lambda nl: gone(nl, 100))


@test
def each_allocation_of_the_first_job():
    """The UDP port is opened for it."""
    around = Around()
    new_net()
    nl = Netlink()
    around.every(lambda fresh: fresh.add(100), lambda _: gone(nl, 100), Netlink)


@test
def each_allocation_of_setting():
    asking(lambda nl: nl.do(SET, attr(J_ID, OTHER) + PATIENT))


@test
def each_allocation_of_showing():
    asking(lambda nl: nl.job(OTHER))


@test
def each_allocation_of_listing_jobs():
    asking(lambda nl: nl.dump(GET))


@test
def each_allocation_of_listing_sockets():
    asking(lambda nl: nl.dump(SOCK_GET))


@test
def each_allocation_of_counters():
    asking(lambda nl: nl.counters())


@test
def each_allocation_of_deleting_a_job():
    asking(lambda nl: nl.delete(100), lambda nl: gone(nl, 100),
           lambda nl: nl.add(100) and None)


@test
def each_allocation_of_a_monitor():
    around = Around()

    def event(_):
        listener = Netlink(groups=True)
        listener.do(SET, attr(J_ID, OTHER) + PATIENT)

    around.every(event)


# And the rest ---------------------------------------------------------------

def load_with(fault):
    """Return: whether an allocation failed."""
    with fault:
        try:
            load_now()
            error = None
        except OSError as e:
            error = e.errno
    hit = fault.hit()
    same(error in ((None, errno.ENOMEM) if hit else (None,)), True, error)
    same(loaded(), not error)
    if not error:
        unload()
    return hit


@test
def each_allocation_of_loading():
    """But those of a new cache and of sysctls: when they fail, the kernel dumps its
    stack.  So the module is told so instead."""
    unload()
    passed = 0
    while load_with(FAULTS.calls(passed)):
        passed += 1
    print(f"# {passed} calls refused")
    same(passed >= FAULTS.AT_LOADING, True, "all that are made")
    for function in ("register_pernet_subsys", "genl_register_family",
                     *FAULTS.BELOW_AT_LOADING):
        failures = {}
        for attr in FAULTS.ATTRS:
            passed = 0
            while load_with(FAULTS.Below(*text_of(here(function)), attrs=[attr],
                                         passed=passed)):
                passed += 1
            failures[attr] = passed
        print(f"# {function}: failures of {failures}")
        # pages only if a cache has no room just then
        same(failures[FAULTS.ATTRS[0]] > 0, True, function)
    load()
    new_net()
    Netlink().add(JOB, more=PATIENT)
    sum_works(join(JOB))


@test
def nothing_is_left():
    """Of the module's references; of memory as kmemleak sees it."""
    load()
    unload()
    said = subprocess.run([os.path.join(TOP, "selftests/vm/checkers.sh")],
                          check=True, text=True, capture_output=True).stdout
    same(said, "")


resource.setrlimit(resource.RLIMIT_NOFILE, (8192, 8192))
main()
