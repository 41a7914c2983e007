/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The client's decisions, as functions of numbers: how a call and its reply travel, and how many
 * calls may be outstanding. No locks, no memory, no verbs: KUnit drives them alone.
 */
#ifndef RPCRDMA_CLNT_PURE_H
#define RPCRDMA_CLNT_PURE_H

#include <linux/types.h>

/* ---------------------------------------------------------------- chunk choice */

/* Segments of one chunk, and of one call in all. They bound the header and the chain. */
#define CLNT_CHUNK_SEGS		16
#define CLNT_CALL_SEGS		32
/* The longest header the client writes. */
#define CLNT_HDR_MAX		1024

/**
 * struct clnt_piece - memory that is contiguous for the CPU, or an array of pages
 * @off: bytes before it in its first page
 * @len: its length in bytes
 */
struct clnt_piece {
	u32 off;
	u32 len;
};

/**
 * struct clnt_shape - a message as sunrpc holds it (struct xdr_buf)
 * @head: up to the page data
 * @pages: page data, without its XDR pad
 * @tail: after the page data and @pad
 * @pad: of an eligible call: bytes of pad between @pages and @tail; they stay when the pages do
 * @eligible: the page data may travel by itself (RFC 8267)
 */
struct clnt_shape {
	struct clnt_piece head;
	struct clnt_piece pages;
	struct clnt_piece tail;
	u32 pad;
	bool eligible;
};

/**
 * struct clnt_limits - what the connection can
 * @call_max: inline threshold of calls in bytes, header included
 * @reply_max: of replies
 * @mr_pages: pages that one memory region covers
 * @page_size: bytes a page
 */
struct clnt_limits {
	u32 call_max;
	u32 reply_max;
	u32 mr_pages;
	u32 page_size;
};

/**
 * struct clnt_plan - how a call and its reply travel
 * @call_long: the call is a NOMSG: all that is not in @read_segs is in the position-zero chunk
 * @call_read: the page data is a read chunk
 * @reply_write: a write chunk is offered for the page data
 * @reply_long: a reply chunk is offered for what is not in the write chunk
 * @call_segs: segments of the position-zero chunk
 * @read_segs: segments of the read chunk
 * @write_segs: segments of the write chunk
 * @reply_segs: segments of the reply chunk
 * @hdr_len: bytes of the call's header
 * @body_len: bytes of the call that follow the header inline
 */
struct clnt_plan {
	bool call_long;
	bool call_read;
	bool reply_write;
	bool reply_long;
	u16 call_segs;
	u16 read_segs;
	u16 write_segs;
	u16 reply_segs;
	u32 hdr_len;
	u32 body_len;
};

int clnt_choose(const struct clnt_shape *call, const struct clnt_shape *reply,
		const struct clnt_limits *limits, struct clnt_plan *plan);
u32 clnt_max_payload(const struct clnt_limits *limits, u32 most);

/* ---------------------------------------------------------------- credits */

/**
 * struct clnt_credit - the forward credits of a connection (RFC 8166 section 3.3.1)
 * @asked: how many each call asks for
 * @limit: calls that may be outstanding: 1 until the first grant
 * @lost: calls that nobody waits for any more, but that the server still owes an answer
 *
 * The count of calls that are outstanding, the lost ones among them, is sunrpc's xprt->cong.
 */
struct clnt_credit {
	u32 asked;
	u32 limit;
	u32 lost;
};

void clnt_credit_begin(struct clnt_credit *credit, u32 asked);
bool clnt_credit_grant(struct clnt_credit *credit, u32 grant);
bool clnt_credit_release(struct clnt_credit *credit, bool sent);
bool clnt_credit_late(struct clnt_credit *credit, bool held);
u32 clnt_credit_end(struct clnt_credit *credit);
bool clnt_credit_stalled(const struct clnt_credit *credit);

#endif /* RPCRDMA_CLNT_PURE_H */
