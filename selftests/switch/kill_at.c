// SPDX-License-Identifier: GPL-2.0
/*
 * kill_at N COMMAND...: kill a command when it is about to change something in
 * the kernel or the file system for the N-th time; 0: let it go on to its end,
 * and print how many times there were.
 *
 * The calls that do so wait for us by a filter of seccomp's.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define IS(what, behind) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, what, behind, 0)
#define LOAD(what) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, \
			    offsetof(struct seccomp_data, what))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_##what)

static int listen_to_ourselves(void)
{
	/* all jumps but the first go to the last instruction */
	struct sock_filter code[] = {
		LOAD(nr),
		IS(SYS_bpf, 7),
		IS(SYS_sendto, 14),
		IS(SYS_mkdir, 13),
		IS(SYS_rmdir, 12),
		IS(SYS_unlink, 11),
		IS(SYS_unlinkat, 10),
		IS(SYS_rename, 9),
		RETURN(ALLOW),
		LOAD(args[0]),
		IS(BPF_MAP_UPDATE_ELEM, 6),
		IS(BPF_MAP_DELETE_ELEM, 5),
		IS(BPF_OBJ_PIN, 4),
		IS(BPF_LINK_CREATE, 3),
		IS(BPF_LINK_UPDATE, 2),
		IS(BPF_LINK_DETACH, 1),
		RETURN(ALLOW),
		RETURN(USER_NOTIF),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(*code), code };

	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		       SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter);
}

/* One call after the other, up to the one that is the command's last */
static int serve(int fd, pid_t pid, int last)
{
	/* the filter of who has ended may stay until we have waited for it */
	struct pollfd wait[] = {
		{ .fd = fd, .events = POLLIN },
		{ .fd = syscall(SYS_pidfd_open, pid, 0), .events = POLLIN },
	};
	struct seccomp_notif_resp answer;
	struct seccomp_notif call;
	int calls = 0;

	while (poll(wait, 2, -1) > 0 && !wait[1].revents &&
	       wait[0].revents & POLLIN) {
		call = (struct seccomp_notif){};
		if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &call)) {
			if (errno == ENOENT)
				continue;
			break;
		}
		if (++calls == last) {
			kill(pid, SIGKILL);
			break;
		}
		answer = (struct seccomp_notif_resp){
			.id = call.id,
			.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE,
		};
		ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &answer);
	}
	close(wait[1].fd);
	return calls;
}

int main(int argc, char **argv)
{
	int *fd, last, calls, status;
	pid_t pid;

	if (argc < 3) {
		fprintf(stderr, "usage: kill_at N COMMAND...\n");
		return 125;
	}
	last = atoi(argv[1]);
	fd = mmap(NULL, sizeof(*fd), PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (fd == MAP_FAILED)
		return 125;
	*fd = -2;
	/* what it opens until it runs the command is open here, too */
	pid = syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
	if (!pid) {
		__atomic_store_n(fd, listen_to_ourselves(), __ATOMIC_SEQ_CST);
		execvp(argv[2], argv + 2);
		_exit(125);
	}
	if (pid < 0)
		return 125;
	while (__atomic_load_n(fd, __ATOMIC_SEQ_CST) == -2)
		usleep(100);
	if (*fd < 0)
		return 125;
	calls = serve(*fd, pid, last);
	waitpid(pid, &status, 0);
	if (!last)
		printf("%d\n", calls);
	if (last ? !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL :
		   status)
		return 1;
	return 0;
}
