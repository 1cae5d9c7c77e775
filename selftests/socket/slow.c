// SPDX-License-Identifier: GPL-2.0
/* Memory that takes its time, and calls that do for it. */
#include <linux/filter.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include "host.h"
#include "slow.h"

void slow_page(struct slow *slow)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = {
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	slow->size = sysconf(_SC_PAGESIZE);
	slow->fd = syscall(SYS_userfaultfd, O_CLOEXEC);
	ASSERT_GE(slow->fd, 0);
	ASSERT_EQ(ioctl(slow->fd, UFFDIO_API, &api), 0);
	slow->page = mmap(NULL, slow->size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_TRUE(slow->page != MAP_FAILED);
	reg.range.start = (uintptr_t)slow->page;
	reg.range.len = slow->size;
	ASSERT_EQ(ioctl(slow->fd, UFFDIO_REGISTER, &reg), 0);
}

void slow_wait(struct slow *slow)
{
	struct uffd_msg msg;

	ASSERT_EQ(read(slow->fd, &msg, sizeof(msg)), sizeof(msg));
	ASSERT_EQ(msg.event, UFFD_EVENT_PAGEFAULT);
}

void slow_fill(struct slow *slow, const void *bytes, size_t len)
{
	char *full = calloc(1, slow->size);
	struct uffdio_copy copy = {
		.dst = (uintptr_t)slow->page,
		.src = (uintptr_t)full,
		.len = slow->size,
	};

	memcpy(full, bytes, len);
	ASSERT_EQ(ioctl(slow->fd, UFFDIO_COPY, &copy), 0);
	free(full);
}

void slow_unmap(struct slow *slow)
{
	ASSERT_EQ(munmap(slow->page, slow->size), 0);
	/* wakes who waits, to find nothing there */
	close(slow->fd);
}

/* The socket layer reads a filter's program while it owns the socket. */
static void *attach(void *arg)
{
	struct owner *owner = arg;
	struct sock_fprog prog = {
		.len = 1, .filter = (struct sock_filter *)owner->slow.page,
	};

	owner->ret = setsockopt(owner->fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog,
				sizeof(prog));
	return NULL;
}

void own(struct owner *owner, int fd)
{
	slow_page(&owner->slow);
	owner->fd = fd;
	ASSERT_EQ(pthread_create(&owner->thread, NULL, attach, owner), 0);
	slow_wait(&owner->slow);
}

void disown(struct owner *owner)
{
	const struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, -1);

	slow_fill(&owner->slow, &all, sizeof(all));
	ASSERT_EQ(pthread_join(owner->thread, NULL), 0);
	EXPECT_EQ(owner->ret, 0);
	slow_unmap(&owner->slow);
}
