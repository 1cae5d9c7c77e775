// SPDX-License-Identifier: GPL-2.0
/* Random netlink messages. */
#include <libmnl/libmnl.h>
#include <linux/atp_netlink.h>
#include <linux/genetlink.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include "vm_fuzz.h"

/* An IPv4 address is mapped into IPv6 */
static void put_address(struct nlmsghdr *nlh, int type, uint32_t job, int who)
{
	const struct in6_addr four = {
		.s6_addr = { [10] = 0xff, 0xff, 10, 9, 0, who },
	};
	const struct in6_addr six = { .s6_addr = { 0xfd, 9, [15] = who } };

	mnl_attr_put(nlh, type, sizeof(four), is_v6(job) ? &six : &four);
}

static void put_worker(struct nlmsghdr *nlh, uint32_t job)
{
	struct nlattr *nest = mnl_attr_nest_start(nlh, ATP_A_JOB_WORKER);

	put_address(nlh, ATP_A_WORKER_ADDR, job, WORKER);
	mnl_attr_nest_end(nlh, nest);
}

/* What an operator would say: short fragments, little memory, a timeout that
 * ends while we look
 */
static void put_job(struct thread *t, struct nlmsghdr *nlh, uint32_t id)
{
	uint32_t i;

	put_address(nlh, ATP_A_JOB_PS, id, PS);
	/* half of the jobs have one worker, for whom a run begins at once */
	for (i = 0; i < 1 + (id & 1); i++)
		put_worker(nlh, id);
	if (chance(t, 2))
		mnl_attr_put_u32(nlh, ATP_A_JOB_FRAGMENT,
				 8 * (1 + below(t, 425)));
	if (chance(t, 2))
		mnl_attr_put_u32(nlh, ATP_A_JOB_WINDOW, 1U << below(t, 9));
	if (chance(t, 4))
		mnl_attr_put_u32(nlh, ATP_A_JOB_SCALE, (uint32_t)rand64(t));
	if (chance(t, 2))
		mnl_attr_put_u8(nlh, ATP_A_JOB_SERVER, 1);
	mnl_attr_put_u32(nlh, ATP_A_JOB_TIMEOUT, 500 + below(t, 1000));
	if (chance(t, 2))
		mnl_attr_put_u32(nlh, ATP_A_JOB_PATIENCE, below(t, 1000));
}

/* Wrong in some bytes behind the headers, which would otherwise never be
 * passed, now and then in the headers as well
 */
static void mutate(struct thread *t, struct nlmsghdr *nlh)
{
	uint32_t n = 1 + below(t, 4), from = NLMSG_HDRLEN + GENL_HDRLEN;
	uint8_t *p = (uint8_t *)nlh;

	if (chance(t, 6))
		from = NLMSG_HDRLEN;
	while (n-- && nlh->nlmsg_len > from)
		p[from + below(t, nlh->nlmsg_len - from)] =
			chance(t, 2) ? rand64(t) : below(t, 24);
	if (chance(t, 6))
		nlh->nlmsg_len -= below(t, nlh->nlmsg_len - NLMSG_HDRLEN);
	if (chance(t, 10))
		nlh->nlmsg_flags = rand64(t);
}

static uint16_t family(void)
{
	static uint16_t number;
	struct mnl_socket *nl;
	struct genlmsghdr *g;
	struct nlmsghdr *nlh;
	struct nlattr *attr;
	char buf[8192];

	if (number)
		return number;
	nlh = mnl_nlmsg_put_header(buf);
	nlh->nlmsg_type = GENL_ID_CTRL;
	nlh->nlmsg_flags = NLM_F_REQUEST;
	g = mnl_nlmsg_put_extra_header(nlh, sizeof(*g));
	g->cmd = CTRL_CMD_GETFAMILY;
	mnl_attr_put_strz(nlh, CTRL_ATTR_FAMILY_NAME, ATP_GENL_NAME);
	nl = mnl_socket_open(NETLINK_GENERIC);
	if (!nl)
		return 0;
	if (mnl_socket_sendto(nl, nlh, nlh->nlmsg_len) > 0 &&
	    mnl_socket_recvfrom(nl, buf, sizeof(buf)) > 0) {
		mnl_attr_for_each(attr, nlh, sizeof(*g))
			if (mnl_attr_get_type(attr) == CTRL_ATTR_FAMILY_ID)
				number = mnl_attr_get_u16(attr);
	}
	mnl_socket_close(nl);
	return number;
}

/* Was the message a success? */
static bool answered_well(struct mnl_socket *nl, char *buf, size_t size)
{
	const struct nlmsghdr *nlh = (void *)buf;
	const struct nlmsgerr *err;
	ssize_t len;

	len = recv(mnl_socket_get_fd(nl), buf, size, MSG_DONTWAIT);
	if (len < (ssize_t)(NLMSG_HDRLEN + sizeof(*err)) ||
	    nlh->nlmsg_type != NLMSG_ERROR)
		return false;
	err = mnl_nlmsg_get_payload(nlh);
	return !err->error;
}

void do_netlink(struct thread *t)
{
	static const uint8_t cmds[] = {
		ATP_CMD_JOB_ADD, ATP_CMD_JOB_ADD, ATP_CMD_JOB_ADD,
		ATP_CMD_JOB_SET, ATP_CMD_JOB_DEL, ATP_CMD_JOB_GET,
		ATP_CMD_SOCK_GET, ATP_CMD_FAMILY_GET,
	};
	uint8_t cmd = cmds[below(t, sizeof(cmds))];
	uint32_t id = 1 + below(t, JOBS);
	struct mnl_socket *nl;
	struct genlmsghdr *g;
	struct nlmsghdr *nlh;
	char buf[8192];
	int one = 1;

	if (cmd == ATP_CMD_JOB_DEL && !chance(t, 8))
		cmd = ATP_CMD_JOB_GET;
	nlh = mnl_nlmsg_put_header(buf);
	nlh->nlmsg_type = family();
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	if (cmd == ATP_CMD_SOCK_GET || (cmd == ATP_CMD_JOB_GET && chance(t, 2)))
		nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	g = mnl_nlmsg_put_extra_header(nlh, sizeof(*g));
	g->cmd = cmd;
	g->version = ATP_GENL_VERSION;
	if (cmd <= ATP_CMD_JOB_GET)
		mnl_attr_put_u32(nlh, ATP_A_JOB_ID, id);
	if (cmd == ATP_CMD_JOB_ADD)
		put_job(t, nlh, id);
	if (cmd == ATP_CMD_JOB_SET)
		mnl_attr_put_u32(nlh, ATP_A_JOB_TIMEOUT, 500 + below(t, 1000));
	if (chance(t, 2))
		mutate(t, nlh);
	nl = mnl_socket_open(NETLINK_GENERIC);
	if (!nl)
		return;
	mnl_socket_setsockopt(nl, NETLINK_EXT_ACK, &one, sizeof(one));
	if (chance(t, 4))
		mnl_socket_setsockopt(nl, NETLINK_GET_STRICT_CHK, &one,
				      sizeof(one));
	if (mnl_socket_sendto(nl, nlh, nlh->nlmsg_len) > 0 &&
	    answered_well(nl, buf, sizeof(buf)) && cmd == ATP_CMD_JOB_ADD)
		count(&shared->added);
	/* a dump may be left in the middle */
	mnl_socket_close(nl);
}
