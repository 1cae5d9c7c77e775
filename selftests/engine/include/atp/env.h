/* SPDX-License-Identifier: GPL-2.0 */
/*
 * User-space surroundings of the engine: what <atp/env.h> of the module takes
 * from the kernel, written anew in ordinary C for tests, fuzzers and the
 * simulator.
 */
#ifndef _ATP_ENV_H
#define _ATP_ENV_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/types.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s8 s8;
typedef __s16 s16;
typedef __s32 s32;
typedef __s64 s64;

#define U8_MAX		((u8)~0U)
#define U16_MAX		((u16)~0U)
#define U32_MAX		((u32)~0U)
#define U64_MAX		((u64)~0ULL)
#define S32_MAX		((s32)(U32_MAX >> 1))
#define S32_MIN		((s32)(-S32_MAX - 1))
#define S64_MAX		((s64)(U64_MAX >> 1))
#define S64_MIN		((s64)(-S64_MAX - 1))

/* Small, so that many a fragment lies in several */
#define PAGE_SIZE	256

#define NSEC_PER_USEC	1000L
#define NSEC_PER_MSEC	1000000L
#define NSEC_PER_SEC	1000000000L

#ifndef __force
#define __force
#endif
#define __packed		__attribute__((packed))
#define __maybe_unused		__attribute__((unused))
#define __always_unused		__attribute__((unused))
#define __must_check		__attribute__((warn_unused_result))
#ifndef __always_inline
#define __always_inline		inline __attribute__((always_inline))
#endif
#define noinline		__attribute__((noinline))
#define fallthrough		__attribute__((fallthrough))
#define likely(x)		__builtin_expect(!!(x), 1)
#define unlikely(x)		__builtin_expect(!!(x), 0)
/* tells KCSAN what is meant */
#define data_race(expr)		(expr)

#undef static_assert
#define static_assert(expr, ...)	_Static_assert(expr, #expr)
#define BUILD_BUG_ON(cond)		_Static_assert(!(cond), #cond)

/* A warning in the kernel is the end of a test. */
#define WARN_ON(cond) ({						\
	bool __cond = !!(cond);						\
									\
	if (unlikely(__cond)) {						\
		fprintf(stderr, "# WARN_ON(%s) in %s, %s:%d\n", #cond,	\
			__func__, __FILE__, __LINE__);			\
		abort();						\
	}								\
	__cond;								\
})
#define WARN_ON_ONCE(cond)	WARN_ON(cond)

#define ARRAY_SIZE(a)		(sizeof(a) / sizeof((a)[0]))
#define BIT(n)			(1UL << (n))
#define BIT_ULL(n)		(1ULL << (n))
#define GENMASK(h, l)		((~0UL << (l)) & (~0UL >> (63 - (h))))
#define GENMASK_ULL(h, l)	((~0ULL << (l)) & (~0ULL >> (63 - (h))))
#define DIV_ROUND_UP(n, d)	(((n) + (d) - 1) / (d))
#define round_up(x, y)		((((x) - 1) | ((__typeof__(x))(y) - 1)) + 1)
#define round_down(x, y)	((x) & ~((__typeof__(x))(y) - 1))
#define ALIGN(x, a)		round_up(x, a)

#define min(a, b) ({							\
	__typeof__(a) __a = (a);					\
	__typeof__(b) __b = (b);					\
									\
	(void)(&__a == &__b);		/* the types are the same */	\
	__a < __b ? __a : __b;						\
})
#define max(a, b) ({							\
	__typeof__(a) __a = (a);					\
	__typeof__(b) __b = (b);					\
									\
	(void)(&__a == &__b);						\
	__a > __b ? __a : __b;						\
})
#define min_t(type, a, b)	min((type)(a), (type)(b))
#define max_t(type, a, b)	max((type)(a), (type)(b))
#define clamp(v, lo, hi)	min(max(v, lo), hi)
#define clamp_t(type, v, lo, hi) min_t(type, max_t(type, v, lo), hi)
#define swap(a, b) do {							\
	__typeof__(a) __tmp = (a);					\
									\
	(a) = (b);							\
	(b) = __tmp;							\
} while (0)
#define container_of(ptr, type, member)					\
	((type *)((char *)(ptr) - offsetof(type, member)))

static inline unsigned int hweight32(u32 w)
{
	return __builtin_popcount(w);
}

/* Lowest set bit; undefined for zero */
static inline unsigned long __ffs(unsigned long w)
{
	return __builtin_ctzl(w);
}

/* Highest set bit plus one, 0 for zero */
static inline int fls(u32 w)
{
	return w ? 32 - __builtin_clz(w) : 0;
}

static inline int fls64(u64 w)
{
	return w ? 64 - __builtin_clzll(w) : 0;
}

static inline int ilog2(u64 n)
{
	return fls64(n) - 1;
}

static inline bool is_power_of_2(unsigned long n)
{
	return n && !(n & (n - 1));
}

static inline u64 mul_u32_u32(u32 a, u32 b)
{
	return (u64)a * b;
}

static inline u64 div_u64_rem(u64 dividend, u32 divisor, u32 *remainder)
{
	*remainder = dividend % divisor;
	return dividend / divisor;
}

static inline u64 div_u64(u64 dividend, u32 divisor)
{
	return dividend / divisor;
}

static inline s64 div_s64(s64 dividend, s32 divisor)
{
	return dividend / divisor;
}

static inline u64 div64_u64_rem(u64 dividend, u64 divisor, u64 *remainder)
{
	*remainder = dividend % divisor;
	return dividend / divisor;
}

static inline u64 div64_u64(u64 dividend, u64 divisor)
{
	return dividend / divisor;
}

__extension__ typedef unsigned __int128 atp_u128;

static inline u64 mul_u64_u64_shr(u64 a, u64 mul, unsigned int shift)
{
	return (u64)(((atp_u128)a * mul) >> shift);
}

static inline __be16 cpu_to_be16(u16 v) { return (__force __be16)htobe16(v); }
static inline __be32 cpu_to_be32(u32 v) { return (__force __be32)htobe32(v); }
static inline __be64 cpu_to_be64(u64 v) { return (__force __be64)htobe64(v); }
static inline __le16 cpu_to_le16(u16 v) { return (__force __le16)htole16(v); }
static inline __le32 cpu_to_le32(u32 v) { return (__force __le32)htole32(v); }
static inline __le64 cpu_to_le64(u64 v) { return (__force __le64)htole64(v); }
static inline u16 be16_to_cpu(__be16 v) { return be16toh((__force u16)v); }
static inline u32 be32_to_cpu(__be32 v) { return be32toh((__force u32)v); }
static inline u64 be64_to_cpu(__be64 v) { return be64toh((__force u64)v); }
static inline u16 le16_to_cpu(__le16 v) { return le16toh((__force u16)v); }
static inline u32 le32_to_cpu(__le32 v) { return le32toh((__force u32)v); }
static inline u64 le64_to_cpu(__le64 v) { return le64toh((__force u64)v); }

#define ATP_ENV_UNALIGNED(order, bits)					\
static inline u##bits get_unaligned_##order##bits(const void *p)	\
{									\
	u##bits v;							\
									\
	memcpy(&v, p, sizeof(v));					\
	return order##bits##toh(v);					\
}									\
									\
static inline void put_unaligned_##order##bits(u##bits v, void *p)	\
{									\
	v = hto##order##bits(v);					\
	memcpy(p, &v, sizeof(v));					\
}

ATP_ENV_UNALIGNED(le, 16)
ATP_ENV_UNALIGNED(le, 32)
ATP_ENV_UNALIGNED(le, 64)
ATP_ENV_UNALIGNED(be, 16)
ATP_ENV_UNALIGNED(be, 32)
ATP_ENV_UNALIGNED(be, 64)

#endif /* _ATP_ENV_H */
