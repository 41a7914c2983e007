/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What lets the wire headers and codecs compile unchanged in the kernel and in user space.
 *
 * Both sides have the fixed-width and the bytewise types (__u32, __be32 ...) and the __cpu_to_*
 * family from the same UAPI headers, so only the freestanding bits differ.
 */
#ifndef RAIL_WIRE_TYPES_H
#define RAIL_WIRE_TYPES_H

#ifdef __KERNEL__
#include <linux/build_bug.h>
#include <linux/errno.h>
#include <linux/stddef.h>
#include <linux/string.h>
#include <linux/types.h>
#else
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <linux/types.h>
#endif
#include <asm/byteorder.h>

/*
 * Loads and stores at any alignment. A memcpy() of constant size is one move on every machine
 * RAIL runs on, and unlike get_unaligned() it needs no header that moved between kernels.
 */
static inline __u32 rail_get_be32(const void *p)
{
	__be32 v;

	memcpy(&v, p, sizeof(v));
	return __be32_to_cpu(v);
}

static inline __u64 rail_get_be64(const void *p)
{
	__be64 v;

	memcpy(&v, p, sizeof(v));
	return __be64_to_cpu(v);
}

static inline void rail_put_be32(void *p, __u32 val)
{
	__be32 v = __cpu_to_be32(val);

	memcpy(p, &v, sizeof(v));
}

static inline void rail_put_be64(void *p, __u64 val)
{
	__be64 v = __cpu_to_be64(val);

	memcpy(p, &v, sizeof(v));
}

/* Does a range of the peer's memory run past the last address? It may end at it. */
static inline bool rail_addr_wraps(__u64 addr, __u32 len)
{
	return len && addr + (len - 1) < addr;
}

/**
 * rail_wire_fetch() - copy bytes that the peer may still be rewriting
 * @dst: private memory
 * @src: memory a remote key reaches
 * @len: bytes
 *
 * Checks are made on the copy and the copy is used. The barrier keeps the compiler from
 * forwarding the later reads of @dst to @src, which would check one value and use another.
 */
static inline void rail_wire_fetch(void *dst, const void *src, size_t len)
{
	memcpy(dst, src, len);
	__asm__ __volatile__("" : : : "memory");
}

#endif /* RAIL_WIRE_TYPES_H */
