// SPDX-License-Identifier: GPL-2.0
/*
 * MSG_ZEROCOPY: a chunk that stays in the memory of who pushes it.  Its pages
 * are pinned until the chunk is pulled, or the socket leaves or joins again:
 * fragments are built from there for every transmission, and results are
 * written there, as long as the run goes on.
 *
 * That is two passes over the chunk instead of four.  Whoever changes the
 * memory meanwhile changes what this rank adds, and nothing else.
 */
#include <linux/highmem.h>
#include <linux/skbuff.h>
#include <linux/workqueue.h>
#include <linux_mm.h>
#include <linux_uio.h>
#include "atp.h"

/**
 * struct atp_pin - pinned pages of a chunk
 * @work: lets go of them: that may sleep, and a chunk may end in softirq
 * @mmp: what RLIMIT_MEMLOCK is charged
 * @n: pages
 * @lanes: their addresses, for the engine
 */
struct atp_pin {
	struct work_struct	work;
	struct mmpin		mmp;
	u32			n;
	u32			*lanes[];
};

static struct workqueue_struct *atp_unpin_wq;

/* At most this many pages hold @len bytes, wherever they begin. */
static u32 atp_pin_pages(u32 len)
{
	return DIV_ROUND_UP(len, PAGE_SIZE) + 1;
}

/* What it costs the socket besides the bytes pushed. */
u32 atp_pin_cost(u32 len)
{
	return offsetof(struct atp_pin, lanes[atp_pin_pages(len)]);
}

static void atp_unpin(struct work_struct *work)
{
	struct atp_pin *pin = container_of(work, struct atp_pin, work);
	struct page **pages = (struct page **)pin->lanes;
	u32 i;

	for (i = 0; i < pin->n; i++) {
		pages[i] = virt_to_page(pin->lanes[i]);
		/* results were written beside the user's mapping */
		flush_dcache_page(pages[i]);
	}
	unpin_user_pages_dirty_lock(pages, pin->n, true);
	mm_unaccount_pinned_pages(&pin->mmp);
	kvfree(pin);
}

/* Nobody needs the pages any more.  Context: any. */
void atp_pin_put(struct atp_pin *pin)
{
	queue_work(atp_unpin_wq, &pin->work);
}

/* Pin pages and write down where the kernel has them. */
static int atp_pin_user(struct atp_pin *pin, unsigned long start, u32 n)
{
	struct page **pages = (struct page **)pin->lanes;
	int got, i;

	got = pin_user_pages_fast(start, n, FOLL_WRITE | FOLL_LONGTERM, pages);
	if (got < 0)
		return got;
	for (i = 0; i < got && atp_page_may_stay(pages[i]); i++)
		;
	if (i != n) {
		unpin_user_pages(pages, got);
		return -EFAULT;
	}
	for (i = 0; i < got; i++) {
		flush_dcache_page(pages[i]);
		pin->lanes[i] = page_address(pages[i]);
	}
	pin->n = got;
	return 0;
}

/**
 * atp_pin_chunk() - have a chunk stay where the user has it
 * @chunk: elements are set, and pages to be
 * @iter: where, one piece
 * @gfp: allocation flags
 *
 * Context: process, no lock.
 * Return: to be given back by atp_pin_put(), or an ERR_PTR: EINVAL if it is in
 * pieces or not aligned, EFAULT if it may not be written or is a file's,
 * ENOBUFS if that is more than the user may lock, ENOBUFS or ENOMEM if there is
 * no memory.
 */
struct atp_pin *atp_pin_chunk(struct atp_chunk *chunk,
			      const struct iov_iter *iter, gfp_t gfp)
{
	u32 len = chunk->elements * 4;
	unsigned long start, first;
	struct atp_pin *pin;
	int err;

	/* no address for the engine: only where it is 32 bits wide */
	if (IS_ENABLED(CONFIG_HIGHMEM))
		return ERR_PTR(-EOPNOTSUPP);
	if (!user_backed_iter(iter) || iov_iter_single_seg_count(iter) < len)
		return ERR_PTR(-EINVAL);
	start = (unsigned long)iter_iov_addr(iter);
	if (start % 4)
		return ERR_PTR(-EINVAL);

	pin = atp_alloc(atp_pin_cost(len), gfp | __GFP_ZERO);
	if (!pin)
		return ERR_PTR(-ENOBUFS);
	err = mm_account_pinned_pages(&pin->mmp, len);
	if (err) {
		/* what nobody needs any more counts until it is let go of */
		flush_workqueue(atp_unpin_wq);
		err = mm_account_pinned_pages(&pin->mmp, len);
	}
	if (err)
		goto free;
	first = start & PAGE_MASK;
	err = atp_pin_user(pin, first,
			   (PAGE_ALIGN(start + len) - first) >> PAGE_SHIFT);
	if (err)
		goto unaccount;
	INIT_WORK(&pin->work, atp_unpin);
	chunk->pages = pin->lanes;
	chunk->skip = offset_in_page(start) / 4;
	return pin;

unaccount:
	mm_unaccount_pinned_pages(&pin->mmp);
free:
	kvfree(pin);
	return ERR_PTR(err);
}

int __init atp_zerocopy_init(void)
{
	atp_unpin_wq = alloc_workqueue("atp_unpin", 0, 0);
	return atp_unpin_wq ? 0 : -ENOMEM;
}

/* No socket is left; what they let go of may be under way. */
void atp_zerocopy_exit(void)
{
	destroy_workqueue(atp_unpin_wq);
}
