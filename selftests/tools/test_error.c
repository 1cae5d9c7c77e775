// SPDX-License-Identifier: GPL-2.0
/* The kernel's refusals into words. */
#include <errno.h>
#include <stddef.h>
#include <tap.h>
#include "message.h"
#include "netlink_gen.h"
#include "nlerror.h"
#include "nlparse.h"

#define EXPECT_TEXT(a, b) \
	TAP_CHECK(!strcmp(a, b), a, (void)0)

static struct nlmsghdr *request(void)
{
	struct nlmsghdr *nlh = genl_message(ATP_CMD_JOB_ADD);

	mnl_attr_put_u32(nlh, ATP_A_JOB_ID, 1);
	put_worker(nlh, 1);
	put_worker(nlh, 2);
	mnl_attr_put_u32(nlh, ATP_A_JOB_WINDOW, 3);
	return nlh;
}

/* Offset of the n-th attribute at the top. */
static uint32_t offset_of(const struct nlmsghdr *nlh, int n)
{
	const struct nlattr *attr;

	mnl_attr_for_each(attr, nlh, GENL_HDRLEN)
		if (!n--)
			return (const char *)attr - (const char *)nlh;
	return 0;
}

static struct nlmsghdr *answer(int error, uint16_t flags)
{
	struct nlmsghdr *nlh = message(NLMSG_ERROR);
	struct nlmsgerr *err;

	nlh->nlmsg_flags = flags;
	err = mnl_nlmsg_put_extra_header(nlh, sizeof(*err));
	err->error = error;
	err->msg.nlmsg_len = NLMSG_HDRLEN;
	return nlh;
}

static int text_of(struct nlmsghdr *nlh, char *text, size_t size)
{
	struct nlmsghdr *req = request();
	int err;

	nlh = seal(nlh);
	err = nl_error(nlh, req, &atp_set_job, text, size);
	free(nlh);
	free(req);
	return err;
}

TEST(error__success)
{
	char text[128];

	EXPECT_EQ(text_of(answer(0, 0), text, sizeof(text)), 0);
}

TEST(error__bare)
{
	char text[128];

	EXPECT_EQ(text_of(answer(-EPERM, 0), text, sizeof(text)), -EPERM);
	EXPECT_TEXT(text, strerror(EPERM));
}

TEST(error__with_attribute)
{
	struct nlmsghdr *req = request();
	struct nlmsghdr *nlh = answer(-EINVAL, NLM_F_ACK_TLVS | NLM_F_CAPPED);
	char text[128];

	mnl_attr_put_strz(nlh, NLMSGERR_ATTR_MSG, "not good");
	mnl_attr_put_u32(nlh, NLMSGERR_ATTR_OFFS, offset_of(req, 3));
	EXPECT_EQ(text_of(nlh, text, sizeof(text)), -EINVAL);
	EXPECT_TEXT(text, "window: not good");
	free(req);
}

TEST(error__in_nest)
{
	struct nlmsghdr *req = request();
	struct nlmsghdr *nlh = answer(-EINVAL, NLM_F_ACK_TLVS | NLM_F_CAPPED);
	char text[128];

	mnl_attr_put_strz(nlh, NLMSGERR_ATTR_MSG, "not good");
	mnl_attr_put_u32(nlh, NLMSGERR_ATTR_OFFS,
			 offset_of(req, 2) + sizeof(struct nlattr));
	EXPECT_EQ(text_of(nlh, text, sizeof(text)), -EINVAL);
	EXPECT_TEXT(text, "worker 1 addr: not good");
	free(req);
}

TEST(error__with_limits)
{
	struct nlmsghdr *nlh = answer(-ERANGE, NLM_F_ACK_TLVS | NLM_F_CAPPED);
	struct nlattr *nest;
	char text[128];

	mnl_attr_put_strz(nlh, NLMSGERR_ATTR_MSG, "out of range");
	nest = mnl_attr_nest_start(nlh, NLMSGERR_ATTR_POLICY);
	mnl_attr_put_u64(nlh, NL_POLICY_TYPE_ATTR_MIN_VALUE_U, 4);
	mnl_attr_put_u64(nlh, NL_POLICY_TYPE_ATTR_MAX_VALUE_U, 4096);
	mnl_attr_nest_end(nlh, nest);
	EXPECT_EQ(text_of(nlh, text, sizeof(text)), -ERANGE);
	EXPECT_TEXT(text, "out of range (4 to 4096)");
}

TEST(error__missing_attribute)
{
	struct nlmsghdr *nlh = answer(-EINVAL, NLM_F_ACK_TLVS | NLM_F_CAPPED);
	char text[128];

	mnl_attr_put_u32(nlh, NLMSGERR_ATTR_MISS_TYPE, ATP_A_JOB_PS);
	EXPECT_EQ(text_of(nlh, text, sizeof(text)), -EINVAL);
	EXPECT_TEXT(text, "ps: is required");
}

TEST(error__offset_anywhere)
{
	struct nlmsghdr *req = seal(request());
	char path[64];
	uint32_t at;

	for (at = 0; at < 2 * req->nlmsg_len; at++)
		nl_path(req, at, &atp_set_job, path, sizeof(path));
	nl_path(req, UINT32_MAX, &atp_set_job, path, sizeof(path));
	EXPECT_TEXT(path, "");
	free(req);
}

TEST(error__text_without_end)
{
	struct nlmsghdr *nlh = answer(-EINVAL, NLM_F_ACK_TLVS | NLM_F_CAPPED);
	char text[128];

	mnl_attr_put(nlh, NLMSGERR_ATTR_MSG, 3, "abc");
	EXPECT_EQ(text_of(nlh, text, sizeof(text)), -EINVAL);
	EXPECT_TEXT(text, strerror(EINVAL));
}

TEST(error__mutated)
{
	struct nlmsghdr *req = seal(request());
	struct nlmsghdr *whole, *nlh;
	uint32_t len, n;
	char text[128];
	int round;

	tap_seed(18);
	whole = answer(-EINVAL, NLM_F_ACK_TLVS);
	mnl_attr_put_strz(whole, NLMSGERR_ATTR_MSG, "text");
	mnl_attr_put_u32(whole, NLMSGERR_ATTR_OFFS, 60);
	for (round = 0; round < 100000; round++) {
		len = NLMSG_HDRLEN + tap_below(whole->nlmsg_len -
					       NLMSG_HDRLEN + 1);
		nlh = malloc(len);
		memcpy(nlh, whole, len);
		for (n = tap_below(4); n && len > NLMSG_HDRLEN; n--)
			((uint8_t *)nlh)[NLMSG_HDRLEN +
					 tap_below(len - NLMSG_HDRLEN)] =
				tap_rand();
		nlh->nlmsg_len = len;
		nl_error(nlh, req, &atp_set_job, text, sizeof(text));
		free(nlh);
	}
	free(whole);
	free(req);
}

TAP_MAIN()
