/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The test pair of RTRS: a store in the server's memory, and a client that writes to it, reads back
 * and compares. Both are users of <rail/rtrs.h>, as RNBD is.
 */
#ifndef RAIL_RTEST_H
#define RAIL_RTEST_H

#include <linux/types.h>

enum rtest_op {
	RTEST_HELLO,	/* admin; a read of 8 bytes: the session's number at the server */
	RTEST_READ,
	RTEST_WRITE,
	RTEST_FLUSH,	/* a read without data */
	RTEST_ERASE,	/* a write without data: zeroes */
	RTEST_FAIL,	/* answered with -offset as errno */
};

/* The user header. @session is what HELLO said: an I/O that carries another one is stale. */
struct rtest_hdr {
	__le32 op;
	__le32 len;
	__le64 offset;
	__le64 session;
	/* Position of a write in its block's history: the server refuses one that is not newer. */
	__le64 version;
};

/* A block of the store has one writer at a time, and a history. */
#define RTEST_BLOCK	(128 << 10)

#endif /* RAIL_RTEST_H */
