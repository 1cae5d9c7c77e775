# SPDX-License-Identifier: GPL-2.0
"""Where the module calls functions of the kernel that may need memory.

All calls out of the module are read from its relocations.  Each function that it
calls must be in one of the two lists, so that a new one cannot be forgotten.
"""
import re
import subprocess

from symbols import original

# may allocate
ALLOCATING = """
    kmalloc_trace kvmalloc_node __vmalloc __alloc_percpu_gfp dst_cache_init
    __alloc_skb __netdev_alloc_frag_align skb_page_frag_refill skb_clone
    __pskb_pull_tail
    sk_alloc udp_sock_create4 udp_sock_create6 sock_create_kern pin_user_pages_fast
    nf_register_net_hooks nf_unregister_net_hooks
    ip_route_output_flow ipv6_dst_lookup_flow ip_local_out ip6_local_out
    netlink_unicast netlink_broadcast
    send_sig sock_wake_async sock_queue_err_skb sk_error_report
    register_pernet_subsys genl_register_family register_net_sysctl
    proto_register __percpu_counter_init alloc_workqueue
""".split()

# While the module is loaded: its addresses are not known before, so all their
# allocations are failed in turn instead.
LOADING = """
    register_pernet_subsys genl_register_family register_net_sysctl
    proto_register __percpu_counter_init alloc_workqueue
""".split()

# Never allocate.  Sanitizers, tracing and lockdep have memory of their own.
OTHERS = re.compile(r"""
    __k?asan_.*|__ubsan_.*|.*trace_.*|perf_.*|lock_.*|lockdep_.*|debug_.*
    |_raw_.*lock.*|__raw_.*|mutex_.*|__mutex_init|(un)?lock_sock.*|release_sock
    |.*rcu_.*|.*_rcu|__local_bh_.*|preempt_.*|__might_fault
    |[_a-z]*copy_(from|to)_(iter|user)|__[gp][eu]t_user_\d|iov_iter_revert
    |k?v?free(_.*)?|mem(cpy|set)|strlen|_find_.*|__sw_hweight32|get_random_u32
    |ktime_get|hrtimer_.*|(__)?tasklet_.*|_printk|refcount_.*|__list_.*
    |(add|remove)_wait_queue|wait_woken|__wake_up|sk_free|sock_init_data|sock_release
    |__sk_mem_.*|sock_i_.*|sock_dequeue_err_skb|sock_(un)?register|put_cmsg
    |skb_(put|trim|checksum|copy_bits|dump|queue_purge|set_owner_w)|consume_skb
    |kfree_skb_reason|csum_.*|dst_release|dst_cache_([sg]et_ip[46]|destroy)
    |dst_cache_reset_now|__ipv6_addr_type|inet_addr_type|ipv6_chk_addr_and_flags
    |ipv6_mod_enabled|__ip_select_ident
    |setup_udp_tunnel_sock|udp_tunnel_sock_release|ip_sock_set_mtu_discover
    |genlmsg_put|(__)?nla_.*|netlink_(has_listeners|ns_capable|set_err)
    |ns_capable
    |from_k.id_munged|make_k.id|in_egroup_p|override_creds|revert_creds
    |_*(SCT__)?((cond|might)_resched|preempt_.*)
    |__folio_put|__put_devmap_managed_(page|folio)_refs|dump_page|free_percpu
    |percpu_counter_(add_batch|destroy)|__percpu_counter_sum
    |nr_free_buffer_pages|irq_fpu_usable|kernel_fpu_(begin_mask|end)
    |nf_conntrack_destroy
    |iov_iter_single_seg_count|mm_(un)?account_pinned_pages|unpin_user_pages.*
    |__init_work|queue_work_on|__flush_workqueue|destroy_workqueue
    |(genl_|proto_)?unregister_.*|proto_unregister
    |__fentry__|__stack_chk_fail|__x86_.*_thunk.*|__check_object_size|PageHuge
    |ip[46]_mtu|ipv4_mtu|percpu_counter_destroy_many|rcuref_get_slowpath
    |sk_skb_reason_drop|skb_queue_purge_reason
""", re.X)

# Functions that call another through a pointer: IPv6 may be a module.
POINTERS = {"atp_route6": "ipv6_dst_lookup_flow"}

# The kernel's own, which a compiler may put into their callers
INLINE = {"sock_wake_async": "sk_wake_async"}
OWN = {("atp_write_space", "sock_wake_async")}


class Site:
    """Calls of the same function in one place: the compiler makes several of one.
    @symbol: the callee's name in this kernel
    @ranges: (first, last) address in .text of which one is where it returns to
    @is_tail: the caller's last jump, so that nothing returns to it: the ranges
    are those of the module's callers"""
    def __init__(self, function, symbol):
        self.function, self.symbol = function, symbol
        self.callee = original(symbol)
        self.ranges = []
        self.is_tail = False

    @property
    def place(self):
        """(function, callee) in the source"""
        if (self.function, self.callee) in OWN:
            return self.function, self.callee
        return INLINE.get(self.callee, self.function), self.callee

    def __str__(self):
        return f"{self.function} calls {self.callee}"


def _undefined(module):
    out = subprocess.run(["nm", "-u", module], check=True, text=True,
                         capture_output=True).stdout
    return {line.split()[-1] for line in out.splitlines()}


def _size(module):
    """Of .text"""
    out = subprocess.run(["objdump", "-h", module], check=True, text=True,
                         capture_output=True).stdout
    return int(re.search(r"\s\.text\s+([0-9a-f]+)", out)[1], 16)


def _calls(module):
    """(section, function, instruction, callee, (first, last) address where it
    returns to) of all calls and jumps to other functions"""
    out = subprocess.run(["objdump", "-dr", "--no-show-raw-insn", module],
                         check=True, text=True, capture_output=True).stdout
    function = section = insn = pointer = None
    for line in out.splitlines():
        if m := re.match(r"Disassembly of section (.*):", line):
            section = m[1]
        elif m := re.match(r"[0-9a-f]+ <(\w+)[^>]*>:", line):
            function = m[1]
        elif m := re.match(r"\s+([0-9a-f]+): R_X86_64_(?:PLT|PC)32\s+(\w+)-0x4",
                           line):
            back = int(m[1], 16) + 4
            if function in POINTERS and re.match(r"__x86_indirect_thunk", m[2]):
                # a kernel without retpolines makes it a call of two bytes
                yield section, function, insn, POINTERS[function], (back - 3, back)
            elif re.match(r"call|j", insn):
                yield section, function, insn, m[2], (back, back)
        elif m := re.match(r"\s+([0-9a-f]+):\s+(\S.*)", line):
            if pointer:
                back = int(m[1], 16)
                yield section, function, "call", pointer, (back, back)
                pointer = None
            insn = m[2]
            if re.match(r"call\s+\*", insn):
                pointer = POINTERS.get(function)


def sites(module):
    """All of them; AssertionError if there is something that is not known."""
    imported = _undefined(module) | set(POINTERS.values())
    found, unknown = {}, set()
    for section, function, insn, symbol, back in _calls(module):
        if symbol not in imported:
            continue
        callee = original(symbol)
        if callee not in ALLOCATING:
            if not OTHERS.fullmatch(callee):
                unknown.add(callee)
            continue
        assert section == ".text" or callee in LOADING, (section, function)
        site = found.setdefault((function, callee), Site(function, symbol))
        site.ranges.append(back)
        if not insn.startswith("call"):
            site.is_tail = True
            site.ranges = [(0, _size(module))]
    assert not unknown, f"allocating or not? {sorted(unknown)}"
    missing = set(ALLOCATING) - {callee for _, callee in found}
    assert not missing, f"called no more: {sorted(missing)}"
    for tail in found.values():
        callers = [s.function for s in found.values() if s.callee == tail.callee]
        assert not tail.is_tail or callers == [tail.function], callers
    return list(found.values())
