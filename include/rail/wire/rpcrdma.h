/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * RPC-over-RDMA version 1 on the wire (RFC 8166; RFC 5666 for what only it has; RFC 8167 for the
 * reverse direction; RFC 8797 for the connection private data).
 *
 * The decoder walks a header once, looks at no byte before it knows that the byte is there, and
 * keeps no copy: what it fills in are counts and places, and the chunk functions below read the
 * segments from the same, then trusted, buffer. There is no allocation and no lock anywhere.
 */
#ifndef RAIL_WIRE_RPCRDMA_H
#define RAIL_WIRE_RPCRDMA_H

#include <rail/wire/types.h>

#define RAIL_RPCRDMA_VERSION		1

/* Sizes in bytes, from the XDR in RFC 8166 section 4.1.2. */
#define RAIL_RPCRDMA_FIXED_LEN		16	/* xid, vers, credit, proc */
#define RAIL_RPCRDMA_HDR_MIN		28	/* MSG or NOMSG with three empty lists */
#define RAIL_RPCRDMA_SEG_LEN		16	/* handle, length, offset */
#define RAIL_RPCRDMA_READ_LEN		24	/* discriminator, position, segment */
#define RAIL_RPCRDMA_MSGP_LEN		8	/* align, thresh: RFC 5666 section 4 */
#define RAIL_RPCRDMA_DONE_LEN		16
#define RAIL_RPCRDMA_ERR_CHUNK_LEN	20
#define RAIL_RPCRDMA_ERR_VERS_LEN	28

/* The least that RFC 5531 section 9 makes of a message; no reduced item lies before that. */
#define RAIL_RPC_CALL_MIN		40	/* up to an empty credential and verifier */
#define RAIL_RPC_REPLY_MIN		20	/* MSG_DENIED, AUTH_ERROR */
#define RAIL_RPC_ACCEPTED_MIN		24	/* MSG_ACCEPTED with an empty verifier */

/* RFC 8166 section 4.2.4 (rdma_proc). */
enum rail_rpcrdma_proc {
	RAIL_RPCRDMA_MSG	= 0,
	RAIL_RPCRDMA_NOMSG	= 1,
	RAIL_RPCRDMA_MSGP	= 2,	/* RFC 5666 only */
	RAIL_RPCRDMA_DONE	= 3,	/* RFC 5666 only */
	RAIL_RPCRDMA_ERROR	= 4,
};

/* RFC 8166 section 4.5 (rdma_err). */
enum rail_rpcrdma_err {
	RAIL_RPCRDMA_ERR_VERS	= 1,
	RAIL_RPCRDMA_ERR_CHUNK	= 2,
};

/* RFC 5531 section 9 (msg_type): what tells the directions apart (RFC 8167). */
enum rail_rpc_dir {
	RAIL_RPC_CALL	= 0,
	RAIL_RPC_REPLY	= 1,
};

/* The fixed part, the same in every version (RFC 8166 section 4.2). */
struct rail_rpcrdma_wire_fixed {
	__be32 xid;
	__be32 vers;
	__be32 credit;
	__be32 proc;
};

static_assert(sizeof(struct rail_rpcrdma_wire_fixed) == RAIL_RPCRDMA_FIXED_LEN);
static_assert(offsetof(struct rail_rpcrdma_wire_fixed, vers) == 4);
static_assert(offsetof(struct rail_rpcrdma_wire_fixed, credit) == 8);
static_assert(offsetof(struct rail_rpcrdma_wire_fixed, proc) == 12);

/* A segment (RFC 8166 section 3.4.3). It is 4-aligned at best: hence the halves. */
struct rail_rpcrdma_wire_seg {
	__be32 handle;
	__be32 length;
	__be32 offset[2];
};

static_assert(sizeof(struct rail_rpcrdma_wire_seg) == RAIL_RPCRDMA_SEG_LEN);
static_assert(offsetof(struct rail_rpcrdma_wire_seg, length) == 4);
static_assert(offsetof(struct rail_rpcrdma_wire_seg, offset) == 8);

/* An entry of the read list (RFC 8166 section 4.3.1). */
struct rail_rpcrdma_wire_read {
	__be32 more;
	__be32 position;
	struct rail_rpcrdma_wire_seg seg;
};

static_assert(sizeof(struct rail_rpcrdma_wire_read) == RAIL_RPCRDMA_READ_LEN);
static_assert(offsetof(struct rail_rpcrdma_wire_read, position) == 4);
static_assert(offsetof(struct rail_rpcrdma_wire_read, seg) == 8);

/*
 * Why a header is refused. Every refusal has its own reason; rail_rpcrdma_reason_text() has the
 * words for the log.
 */
enum rail_rpcrdma_reason {
	RAIL_RPCRDMA_OK = 0,
	/* the fixed part */
	RAIL_RPCRDMA_SHORT,
	RAIL_RPCRDMA_BAD_VERS,
	RAIL_RPCRDMA_BAD_PROC,
	/* read list */
	RAIL_RPCRDMA_READ_SHORT,
	RAIL_RPCRDMA_READ_WORD,
	RAIL_RPCRDMA_READ_SEGS,
	RAIL_RPCRDMA_READ_CHUNKS,
	RAIL_RPCRDMA_READ_ZERO,
	RAIL_RPCRDMA_READ_WRAP,
	RAIL_RPCRDMA_READ_ADDR,
	RAIL_RPCRDMA_READ_REPLY,
	RAIL_RPCRDMA_POS_ALIGN,
	RAIL_RPCRDMA_POS_BACK,
	RAIL_RPCRDMA_POS_INSIDE,
	RAIL_RPCRDMA_POS_ZERO,
	RAIL_RPCRDMA_POS_HEADER,
	RAIL_RPCRDMA_POS_PAST,
	/* write list */
	RAIL_RPCRDMA_WRITE_SHORT,
	RAIL_RPCRDMA_WRITE_WORD,
	RAIL_RPCRDMA_WRITE_CHUNKS,
	RAIL_RPCRDMA_WRITE_COUNT,
	RAIL_RPCRDMA_WRITE_SEGS,
	RAIL_RPCRDMA_WRITE_ZERO,
	RAIL_RPCRDMA_WRITE_WRAP,
	RAIL_RPCRDMA_WRITE_ADDR,
	/* reply chunk */
	RAIL_RPCRDMA_REPLY_SHORT,
	RAIL_RPCRDMA_REPLY_WORD,
	RAIL_RPCRDMA_REPLY_COUNT,
	RAIL_RPCRDMA_REPLY_SEGS,
	RAIL_RPCRDMA_REPLY_ZERO,
	RAIL_RPCRDMA_REPLY_WRAP,
	RAIL_RPCRDMA_REPLY_ADDR,
	/* the RPC message as a whole */
	RAIL_RPCRDMA_RPC_SHORT,
	RAIL_RPCRDMA_RPC_XID,
	RAIL_RPCRDMA_RPC_TYPE,
	RAIL_RPCRDMA_RPC_WRAP,
	RAIL_RPCRDMA_RPC_LONG,
	RAIL_RPCRDMA_NOMSG_BODY,
	RAIL_RPCRDMA_NOMSG_NO_CALL,
	RAIL_RPCRDMA_NOMSG_NO_REPLY,
	/* MSGP, DONE, ERROR */
	RAIL_RPCRDMA_MSGP_OFF,
	RAIL_RPCRDMA_MSGP_SHORT,
	RAIL_RPCRDMA_MSGP_ALIGN,
	RAIL_RPCRDMA_MSGP_THRESH,
	RAIL_RPCRDMA_DONE_SIZE,
	RAIL_RPCRDMA_ERROR_SIZE,
	RAIL_RPCRDMA_ERROR_CODE,
	RAIL_RPCRDMA_ERROR_RANGE,
	/* lists a responder hands back */
	RAIL_RPCRDMA_RET_CHUNKS,
	RAIL_RPCRDMA_RET_SEGS,
	RAIL_RPCRDMA_RET_HANDLE,
	RAIL_RPCRDMA_RET_OFFSET,
	RAIL_RPCRDMA_RET_LENGTH,
	RAIL_RPCRDMA_RET_HOLE,
	RAIL_RPCRDMA_NR_REASONS,
};

/**
 * enum rail_rpcrdma_verdict - what goes back to the sender of a refused header
 * @RAIL_RPCRDMA_DROP: nothing; count it and keep the connection
 * @RAIL_RPCRDMA_SEND_ERR_VERS: RDMA_ERROR, ERR_VERS, with the same XID
 * @RAIL_RPCRDMA_SEND_ERR_CHUNK: RDMA_ERROR, ERR_CHUNK, with the same XID
 */
enum rail_rpcrdma_verdict {
	RAIL_RPCRDMA_DROP,
	RAIL_RPCRDMA_SEND_ERR_VERS,
	RAIL_RPCRDMA_SEND_ERR_CHUNK,
};

/**
 * struct rail_rpcrdma_rules - what a receiver is ready to take
 * @max_msg: longest RPC message in bytes, what its read chunks bring included; 0 for any
 * @max_read_segs: segments in the read list
 * @max_read_chunks: read chunks, the position-zero one included
 * @max_write_chunks: write chunks
 * @max_chunk_segs: segments in one write chunk, or in the reply chunk
 * @home: direction that this end receives in the forward direction (enum rail_rpc_dir): calls
 *	for a server, replies for a client. It decides only where the message does not say its
 *	own direction: a NOMSG, and a header that is refused before the body is found.
 * @legacy: take what only RFC 5666 has: MSGP, and read lists in replies. DONE is decoded always,
 *	for the caller to count and drop.
 */
struct rail_rpcrdma_rules {
	__u32 max_msg;
	__u16 max_read_segs;
	__u16 max_read_chunks;
	__u16 max_write_chunks;
	__u16 max_chunk_segs;
	__u8 home;
	bool legacy;
};

/**
 * struct rail_rpcrdma_lists - where the lists of a valid header stand
 * @read_at: byte where the read list begins
 * @write_at: byte where the write list begins
 * @reply_at: byte where the reply chunk begins
 * @nr_read_segs: segments in the read list
 * @nr_write_chunks: chunks in the write list
 * @nr_reply_segs: segments in the reply chunk
 * @has_reply_chunk: a reply chunk is there (it may be of no segments or no bytes)
 *
 * The decoder fills it in, and so does the encoder: a client that keeps these few bytes of a call
 * can hold the lists that come back against those it sent.
 */
struct rail_rpcrdma_lists {
	__u32 read_at;
	__u32 write_at;
	__u32 reply_at;
	__u16 nr_read_segs;
	__u16 nr_write_chunks;
	__u16 nr_reply_segs;
	bool has_reply_chunk;
};

/**
 * struct rail_rpcrdma_hdr - a decoded header
 * @xid: as in the RPC message
 * @vers: always 1 in a header that is not refused
 * @credit: asked for (call) or granted (reply), as it stands in the message
 * @proc: enum rail_rpcrdma_proc
 * @dir: enum rail_rpc_dir
 * @has_call_chunk: the read list begins with a position-zero chunk, which is the message
 * @nr_read_chunks: chunks in the read list, the position-zero one included
 * @nr_write_segs: segments in all write chunks
 * @lists: places and counts for the chunk functions
 * @body_at: byte where the RPC message begins; the length of the header
 * @body_len: bytes of RPC message inline (in a MSGP with its pad)
 * @call_len: bytes in the position-zero chunk
 * @reply_len: bytes in the reply chunk
 * @read_len: bytes in all read chunks but the position-zero one
 * @msg_len: bytes of the RPC message when all read chunks are put in their places, with XDR pad
 * @write_len: bytes in all write chunks; may be more than 32 bits of them
 * @align: MSGP: alignment of the data
 * @thresh: MSGP: opaque items longer than this are aligned
 * @err: ERROR: enum rail_rpcrdma_err
 * @vers_low: ERR_VERS: lowest version the peer speaks
 * @vers_high: ERR_VERS: highest version the peer speaks
 *
 * @xid, @vers, @credit and @proc are filled in whenever the message has 16 bytes, also when it
 * is refused, so that an RPC which the message names can be ended. The rest of a refused header
 * is not to be looked at, but for @dir.
 */
struct rail_rpcrdma_hdr {
	__u32 xid;
	__u32 vers;
	__u32 credit;
	__u32 proc;
	__u8 dir;
	bool has_call_chunk;
	__u16 nr_read_chunks;
	__u32 nr_write_segs;
	struct rail_rpcrdma_lists lists;
	__u32 body_at;
	__u32 body_len;
	__u32 call_len;
	__u32 reply_len;
	__u32 read_len;
	__u32 msg_len;
	__u64 write_len;
	__u32 align;
	__u32 thresh;
	__u32 err;
	__u32 vers_low;
	__u32 vers_high;
};

enum rail_rpcrdma_reason rail_rpcrdma_decode(const void *buf, __u32 len,
					     const struct rail_rpcrdma_rules *rules,
					     struct rail_rpcrdma_hdr *hdr);
enum rail_rpcrdma_verdict rail_rpcrdma_answer(enum rail_rpcrdma_reason reason,
					      const struct rail_rpcrdma_hdr *hdr);
const char *rail_rpcrdma_reason_text(enum rail_rpcrdma_reason reason);

/**
 * rail_rpc_peek() - XID and direction of an RPC message from its first words
 * @body: the message
 * @len: bytes there
 * @xid: filled in
 * @dir: filled in with the msg_type as it is, which need not be one of enum rail_rpc_dir
 *
 * Return: false when the message is too short to have them.
 */
static inline bool rail_rpc_peek(const void *body, __u32 len, __u32 *xid, __u32 *dir)
{
	if (len < 8)
		return false;
	*xid = rail_get_be32(body);
	*dir = rail_get_be32((const __u8 *)body + 4);
	return true;
}

/**
 * rail_rpcrdma_msgp_pad() - pad bytes before an item of a MSGP message (RFC 5666 section 4)
 * @hdr: decoded header
 * @at: byte of the message, counted from its first one, where the item would begin unpadded
 * @len: bytes in the item
 */
static inline __u32 rail_rpcrdma_msgp_pad(const struct rail_rpcrdma_hdr *hdr, __u32 at, __u32 len)
{
	if (hdr->proc != RAIL_RPCRDMA_MSGP || len <= hdr->thresh)
		return 0;
	return -at & (hdr->align - 1);
}

/**
 * struct rail_rpcrdma_seg - one segment
 * @handle: the key
 * @length: bytes
 * @offset: the address
 */
struct rail_rpcrdma_seg {
	__u32 handle;
	__u32 length;
	__u64 offset;
};

/**
 * struct rail_rpcrdma_chunk - one chunk of a decoded header
 * @position: read chunk: its place in the RPC message
 * @length: bytes in all segments
 * @nr_segs: segments
 * @at: byte of the first segment in the header
 * @stride: bytes from one segment to the next
 */
struct rail_rpcrdma_chunk {
	__u32 position;
	__u32 length;
	__u32 nr_segs;
	__u32 at;
	__u32 stride;
};

/**
 * struct rail_rpcrdma_iter - a place in the read or write list of a decoded header
 * @at: byte of the next entry
 * @left: entries not yet seen: segments of a read list, chunks of a write list
 */
struct rail_rpcrdma_iter {
	__u32 at;
	__u32 left;
};

/**
 * rail_rpcrdma_read_iter() - before the first chunk of the read list
 * @it: iterator
 * @lists: of a header that was decoded without a refusal, or that was encoded
 */
static inline void rail_rpcrdma_read_iter(struct rail_rpcrdma_iter *it,
					  const struct rail_rpcrdma_lists *lists)
{
	it->at = lists->read_at;
	it->left = lists->nr_read_segs;
}

/**
 * rail_rpcrdma_write_iter() - before the first chunk of the write list
 * @it: iterator
 * @lists: of a header that was decoded without a refusal, or that was encoded
 */
static inline void rail_rpcrdma_write_iter(struct rail_rpcrdma_iter *it,
					   const struct rail_rpcrdma_lists *lists)
{
	it->at = lists->write_at;
	it->left = lists->nr_write_chunks;
}

bool rail_rpcrdma_next_read(const void *buf, struct rail_rpcrdma_iter *it,
			    struct rail_rpcrdma_chunk *chunk);
bool rail_rpcrdma_next_write(const void *buf, struct rail_rpcrdma_iter *it,
			     struct rail_rpcrdma_chunk *chunk);
bool rail_rpcrdma_reply_chunk(const void *buf, const struct rail_rpcrdma_lists *lists,
			      struct rail_rpcrdma_chunk *chunk);

/**
 * rail_rpcrdma_get_seg() - read a segment of a chunk
 * @buf: the decoded buffer
 * @chunk: chunk in it
 * @nr: which, less than @chunk->nr_segs
 * @seg: filled in
 */
static inline void rail_rpcrdma_get_seg(const void *buf, const struct rail_rpcrdma_chunk *chunk,
					__u32 nr, struct rail_rpcrdma_seg *seg)
{
	const __u8 *p = (const __u8 *)buf + chunk->at + nr * chunk->stride;

	seg->handle = rail_get_be32(p);
	seg->length = rail_get_be32(p + 4);
	seg->offset = rail_get_be64(p + 8);
}

enum rail_rpcrdma_reason rail_rpcrdma_check_returned(const void *call,
						     const struct rail_rpcrdma_lists *offered,
						     const void *reply,
						     const struct rail_rpcrdma_lists *returned);

/**
 * struct rail_rpcrdma_enc - a writer over a fixed buffer
 * @buf: where to
 * @size: bytes there
 * @len: bytes written
 * @count_at: where the segment count of the open chunk stands
 * @nr_segs: segments in the open chunk
 * @lists: what was written so far; complete with the header
 * @state: which part comes next
 *
 * Nothing is written past @size. A call that does not fit, or that comes out of order, marks the
 * writer bad; all later calls do nothing, and rail_rpcrdma_enc_finish() returns 0. So only the
 * end needs a check.
 */
struct rail_rpcrdma_enc {
	__u8 *buf;
	__u32 size;
	__u32 len;
	__u32 count_at;
	__u32 nr_segs;
	struct rail_rpcrdma_lists lists;
	__u8 state;
};

void rail_rpcrdma_enc_init(struct rail_rpcrdma_enc *enc, void *buf, __u32 size);
void rail_rpcrdma_enc_fixed(struct rail_rpcrdma_enc *enc, __u32 xid, __u32 credit,
			    enum rail_rpcrdma_proc proc);
void rail_rpcrdma_enc_msgp(struct rail_rpcrdma_enc *enc, __u32 align, __u32 thresh);
void rail_rpcrdma_enc_read(struct rail_rpcrdma_enc *enc, __u32 position,
			   const struct rail_rpcrdma_seg *seg);
void rail_rpcrdma_enc_reads_end(struct rail_rpcrdma_enc *enc);
void rail_rpcrdma_enc_write_begin(struct rail_rpcrdma_enc *enc);
void rail_rpcrdma_enc_writes_end(struct rail_rpcrdma_enc *enc);
void rail_rpcrdma_enc_reply_begin(struct rail_rpcrdma_enc *enc);
void rail_rpcrdma_enc_no_reply(struct rail_rpcrdma_enc *enc);
void rail_rpcrdma_enc_seg(struct rail_rpcrdma_enc *enc, const struct rail_rpcrdma_seg *seg);
void rail_rpcrdma_enc_chunk_end(struct rail_rpcrdma_enc *enc);
void rail_rpcrdma_enc_body(struct rail_rpcrdma_enc *enc, const void *data, __u32 len);
void rail_rpcrdma_enc_done(struct rail_rpcrdma_enc *enc, __u32 xid, __u32 credit);
void rail_rpcrdma_enc_err_vers(struct rail_rpcrdma_enc *enc, __u32 xid, __u32 credit,
			       __u32 low, __u32 high);
void rail_rpcrdma_enc_err_chunk(struct rail_rpcrdma_enc *enc, __u32 xid, __u32 credit);
void rail_rpcrdma_enc_returned(struct rail_rpcrdma_enc *enc, const void *call,
			       const struct rail_rpcrdma_chunk *chunk, __u32 written);
__u32 rail_rpcrdma_enc_finish(const struct rail_rpcrdma_enc *enc);

bool rail_rpcrdma_patch(void *buf, const struct rail_rpcrdma_chunk *chunk, __u32 written);

/**
 * rail_rpcrdma_hdr_size() - bytes that a MSG or NOMSG header takes
 * @read_segs: segments in the read list
 * @write_chunks: chunks in the write list
 * @write_segs: segments in all of these
 * @reply: whether there is a reply chunk
 * @reply_segs: segments in it
 */
static inline __u32 rail_rpcrdma_hdr_size(__u32 read_segs, __u32 write_chunks, __u32 write_segs,
					  bool reply, __u32 reply_segs)
{
	return RAIL_RPCRDMA_HDR_MIN + read_segs * RAIL_RPCRDMA_READ_LEN + write_chunks * 8 +
	       write_segs * RAIL_RPCRDMA_SEG_LEN +
	       (reply ? 4 + reply_segs * RAIL_RPCRDMA_SEG_LEN : 0);
}

/* Connection private data, RFC 8797 section 4. */
#define RAIL_RPCRDMA_CM_MAGIC		0xf6ab0e18
#define RAIL_RPCRDMA_CM_VERSION		1
#define RAIL_RPCRDMA_CM_F_REMOTE_INVAL	0x01
#define RAIL_RPCRDMA_CM_LEN		8
#define RAIL_RPCRDMA_INLINE_UNIT	1024
#define RAIL_RPCRDMA_INLINE_DEFAULT	1024
#define RAIL_RPCRDMA_INLINE_MAX		(256 * RAIL_RPCRDMA_INLINE_UNIT)

struct rail_rpcrdma_wire_cm {
	__be32 magic;
	__u8 version;
	__u8 flags;
	__u8 send_size;
	__u8 recv_size;
};

static_assert(sizeof(struct rail_rpcrdma_wire_cm) == RAIL_RPCRDMA_CM_LEN);
static_assert(offsetof(struct rail_rpcrdma_wire_cm, version) == 4);
static_assert(offsetof(struct rail_rpcrdma_wire_cm, flags) == 5);
static_assert(offsetof(struct rail_rpcrdma_wire_cm, send_size) == 6);
static_assert(offsetof(struct rail_rpcrdma_wire_cm, recv_size) == 7);

/**
 * struct rail_rpcrdma_conn - what one end says of itself at connect time
 * @send_max: most bytes it sends inline
 * @recv_max: most bytes it receives inline
 * @remote_inval: it takes and makes Send With Invalidate
 */
struct rail_rpcrdma_conn {
	__u32 send_max;
	__u32 recv_max;
	bool remote_inval;
};

bool rail_rpcrdma_cm_decode(const void *data, __u32 len, struct rail_rpcrdma_conn *conn);
void rail_rpcrdma_cm_encode(void *data, const struct rail_rpcrdma_conn *conn);

/**
 * struct rail_rpcrdma_agreed - what both ends of a connection go by
 * @call_max: bytes of an inline forward call or reverse reply, header included
 * @reply_max: bytes of an inline forward reply or reverse call (RFC 8167)
 * @remote_inval: Send With Invalidate may be used
 */
struct rail_rpcrdma_agreed {
	__u32 call_max;
	__u32 reply_max;
	bool remote_inval;
};

void rail_rpcrdma_agree(const struct rail_rpcrdma_conn *client,
			const struct rail_rpcrdma_conn *server,
			struct rail_rpcrdma_agreed *agreed);

#endif /* RAIL_WIRE_RPCRDMA_H */
