// SPDX-License-Identifier: GPL-2.0-only
/*
 * Codec of the RPC-over-RDMA version 1 transport header (RFC 8166). See the header for how it is
 * meant to be used.
 */
#include <rail/wire/rpcrdma.h>

#define U32_MOST	((__u32)~0U)

/* What is not known before the direction is, and the place in the header. */
struct walk {
	const __u8 *buf;
	__u32 len;
	__u32 at;
	__u32 last_inline;	/* where the last read chunk stands in what is left of the stream */
	__u32 first_pos;	/* of the chunks that are not position zero */
	__u64 moved;		/* bytes of the stream in such chunks, XDR pad included */
	bool write_hole;	/* a segment of no bytes in a chunk that has some */
	bool reply_hole;
};

static __u32 left(const struct walk *w)
{
	return w->len - w->at;
}

static __u32 take(struct walk *w)
{
	__u32 v = rail_get_be32(w->buf + w->at);

	w->at += 4;
	return v;
}

static __u64 xdr_round(__u64 len)
{
	return (len + 3) & ~3ULL;
}

/* A read chunk, if any, is complete: account for the bytes it took out of the stream. */
static void close_read_chunk(struct walk *w, struct rail_rpcrdma_hdr *hdr, __u32 pos, __u32 bytes)
{
	if (pos)
		w->moved += xdr_round(bytes);
	else
		hdr->call_len = bytes;
}

/* A segment of a new position: does its chunk have a place in the stream? */
static enum rail_rpcrdma_reason open_read_chunk(struct walk *w, struct rail_rpcrdma_hdr *hdr,
						const struct rail_rpcrdma_rules *rules, __u32 pos)
{
	if (hdr->nr_read_chunks == rules->max_read_chunks)
		return RAIL_RPCRDMA_READ_CHUNKS;
	hdr->nr_read_chunks++;
	if (!pos) {
		hdr->has_call_chunk = true;
		return RAIL_RPCRDMA_OK;
	}
	/*
	 * Positions count the bytes of the chunks before (RFC 8166 section 3.4.5), and with them
	 * the pad that the stream would have had.
	 */
	if (pos < w->moved || pos - w->moved < w->last_inline)
		return RAIL_RPCRDMA_POS_INSIDE;
	w->last_inline = pos - w->moved;
	if (!w->first_pos)
		w->first_pos = pos;
	return RAIL_RPCRDMA_OK;
}

/* RFC 8166 section 4.3.1 */
static enum rail_rpcrdma_reason decode_read_list(struct walk *w,
						 const struct rail_rpcrdma_rules *rules,
						 struct rail_rpcrdma_hdr *hdr)
{
	enum rail_rpcrdma_reason reason;
	__u32 last = 0, bytes = 0;

	hdr->lists.read_at = w->at;
	for (;;) {
		__u32 word, pos, length;
		__u64 offset;

		if (left(w) < 4)
			return RAIL_RPCRDMA_READ_SHORT;
		word = take(w);
		if (!word)
			break;
		if (word != 1)
			return RAIL_RPCRDMA_READ_WORD;
		if (left(w) < RAIL_RPCRDMA_READ_LEN - 4)
			return RAIL_RPCRDMA_READ_SHORT;
		if (hdr->lists.nr_read_segs == rules->max_read_segs)
			return RAIL_RPCRDMA_READ_SEGS;

		pos = take(w);
		length = rail_get_be32(w->buf + w->at + 4);
		offset = rail_get_be64(w->buf + w->at + 8);
		w->at += RAIL_RPCRDMA_SEG_LEN;

		if (pos & 3)
			return RAIL_RPCRDMA_POS_ALIGN;
		if (pos < last)
			return RAIL_RPCRDMA_POS_BACK;
		/* A sender that offers data offers some. */
		if (!length)
			return RAIL_RPCRDMA_READ_ZERO;
		if (rail_addr_wraps(offset, length))
			return RAIL_RPCRDMA_READ_ADDR;
		if (!hdr->lists.nr_read_segs || pos != last) {
			close_read_chunk(w, hdr, last, bytes);
			reason = open_read_chunk(w, hdr, rules, pos);
			if (reason)
				return reason;
			last = pos;
			bytes = 0;
		}
		if (length > U32_MOST - bytes)
			return RAIL_RPCRDMA_READ_WRAP;
		bytes += length;
		if (pos) {
			if (length > U32_MOST - hdr->read_len)
				return RAIL_RPCRDMA_READ_WRAP;
			hdr->read_len += length;
		}
		hdr->lists.nr_read_segs++;
	}
	close_read_chunk(w, hdr, last, bytes);
	return RAIL_RPCRDMA_OK;
}

/* The counted array of a write chunk or of the reply chunk (RFC 8166 section 4.3.2, 4.3.3). */
static enum rail_rpcrdma_reason decode_chunk(struct walk *w, bool reply,
					     const struct rail_rpcrdma_rules *rules,
					     __u32 *nr_segs, __u32 *bytes)
{
	bool zero = false;
	__u32 n;

	*bytes = 0;
	if (left(w) < 4)
		return reply ? RAIL_RPCRDMA_REPLY_SHORT : RAIL_RPCRDMA_WRITE_SHORT;
	*nr_segs = take(w);
	/* Divided, not multiplied: a count can be what wraps. */
	if (*nr_segs > left(w) / RAIL_RPCRDMA_SEG_LEN)
		return reply ? RAIL_RPCRDMA_REPLY_COUNT : RAIL_RPCRDMA_WRITE_COUNT;
	if (*nr_segs > rules->max_chunk_segs)
		return reply ? RAIL_RPCRDMA_REPLY_SEGS : RAIL_RPCRDMA_WRITE_SEGS;

	for (n = *nr_segs; n; n--) {
		__u32 length = rail_get_be32(w->buf + w->at + 4);
		__u64 offset = rail_get_be64(w->buf + w->at + 8);

		w->at += RAIL_RPCRDMA_SEG_LEN;
		if (!length)
			zero = true;
		if (rail_addr_wraps(offset, length))
			return reply ? RAIL_RPCRDMA_REPLY_ADDR : RAIL_RPCRDMA_WRITE_ADDR;
		if (length > U32_MOST - *bytes)
			return reply ? RAIL_RPCRDMA_REPLY_WRAP : RAIL_RPCRDMA_WRITE_WRAP;
		*bytes += length;
	}
	/*
	 * A chunk of no bytes at all is one that is not to be used (RFC 8166 section 3.4.6.3).
	 * A hole in a chunk that has bytes is what only a responder makes.
	 */
	if (zero && *bytes) {
		if (reply)
			w->reply_hole = true;
		else
			w->write_hole = true;
	}
	return RAIL_RPCRDMA_OK;
}

/* RFC 8166 section 4.3.2 */
static enum rail_rpcrdma_reason decode_write_list(struct walk *w,
						  const struct rail_rpcrdma_rules *rules,
						  struct rail_rpcrdma_hdr *hdr)
{
	enum rail_rpcrdma_reason reason;
	__u32 word, segs, bytes;

	hdr->lists.write_at = w->at;
	for (;;) {
		if (left(w) < 4)
			return RAIL_RPCRDMA_WRITE_SHORT;
		word = take(w);
		if (!word)
			return RAIL_RPCRDMA_OK;
		if (word != 1)
			return RAIL_RPCRDMA_WRITE_WORD;
		if (hdr->lists.nr_write_chunks == rules->max_write_chunks)
			return RAIL_RPCRDMA_WRITE_CHUNKS;
		reason = decode_chunk(w, false, rules, &segs, &bytes);
		if (reason)
			return reason;
		hdr->lists.nr_write_chunks++;
		hdr->nr_write_segs += segs;
		hdr->write_len += bytes;
	}
}

/* RFC 8166 section 4.3.3 */
static enum rail_rpcrdma_reason decode_reply_chunk(struct walk *w,
						   const struct rail_rpcrdma_rules *rules,
						   struct rail_rpcrdma_hdr *hdr)
{
	enum rail_rpcrdma_reason reason;
	__u32 word, segs;

	hdr->lists.reply_at = w->at;
	if (left(w) < 4)
		return RAIL_RPCRDMA_REPLY_SHORT;
	word = take(w);
	if (!word)
		return RAIL_RPCRDMA_OK;
	if (word != 1)
		return RAIL_RPCRDMA_REPLY_WORD;
	reason = decode_chunk(w, true, rules, &segs, &hdr->reply_len);
	if (reason)
		return reason;
	hdr->lists.has_reply_chunk = true;
	hdr->lists.nr_reply_segs = segs;
	return RAIL_RPCRDMA_OK;
}

/* RFC 5666 section 4: the two words of a MSGP. */
static enum rail_rpcrdma_reason decode_msgp(struct walk *w,
					    const struct rail_rpcrdma_rules *rules,
					    struct rail_rpcrdma_hdr *hdr)
{
	/* RFC 8166 section 4.6.1 */
	if (!rules->legacy)
		return RAIL_RPCRDMA_MSGP_OFF;
	if (left(w) < RAIL_RPCRDMA_MSGP_LEN)
		return RAIL_RPCRDMA_MSGP_SHORT;
	hdr->align = take(w);
	hdr->thresh = take(w);
	/* XDR itself aligns to 4; more pad than the largest page is of use to nobody. */
	if (hdr->align < 4 || hdr->align > 65536 || (hdr->align & (hdr->align - 1)))
		return RAIL_RPCRDMA_MSGP_ALIGN;
	/* 0 would set every item apart, those of the RPC header too. */
	if (!hdr->thresh)
		return RAIL_RPCRDMA_MSGP_THRESH;
	return RAIL_RPCRDMA_OK;
}

/* RFC 8166 section 4.5 */
static enum rail_rpcrdma_reason decode_error(struct walk *w, struct rail_rpcrdma_hdr *hdr)
{
	if (left(w) < 4)
		return RAIL_RPCRDMA_ERROR_SIZE;
	hdr->err = take(w);
	switch (hdr->err) {
	case RAIL_RPCRDMA_ERR_VERS:
		if (w->len != RAIL_RPCRDMA_ERR_VERS_LEN)
			return RAIL_RPCRDMA_ERROR_SIZE;
		hdr->vers_low = take(w);
		hdr->vers_high = take(w);
		if (hdr->vers_low > hdr->vers_high)
			return RAIL_RPCRDMA_ERROR_RANGE;
		break;
	case RAIL_RPCRDMA_ERR_CHUNK:
		if (w->len != RAIL_RPCRDMA_ERR_CHUNK_LEN)
			return RAIL_RPCRDMA_ERROR_SIZE;
		break;
	default:
		return RAIL_RPCRDMA_ERROR_CODE;
	}
	hdr->body_at = w->at;
	return RAIL_RPCRDMA_OK;
}

/* The direction, and how long the message is without what the read chunks bring. */
static enum rail_rpcrdma_reason find_message(const struct walk *w,
					     const struct rail_rpcrdma_rules *rules,
					     struct rail_rpcrdma_hdr *hdr, __u32 *base)
{
	__u32 xid, dir;

	if (hdr->proc != RAIL_RPCRDMA_NOMSG) {
		if (!rail_rpc_peek(w->buf + hdr->body_at, hdr->body_len, &xid, &dir))
			return RAIL_RPCRDMA_RPC_SHORT;
		if (dir != RAIL_RPC_CALL && dir != RAIL_RPC_REPLY)
			return RAIL_RPCRDMA_RPC_TYPE;
		hdr->dir = dir;
		/* RFC 8166 section 4.2.1 */
		if (xid != hdr->xid)
			return RAIL_RPCRDMA_RPC_XID;
		if (hdr->has_call_chunk)
			return RAIL_RPCRDMA_POS_ZERO;
		*base = hdr->body_len;
	} else {
		/*
		 * RFC 8166 section 3.5.3. A client that speaks RFC 8166 gets a position-zero
		 * chunk only in a reverse call.
		 */
		if (hdr->has_call_chunk && !(rules->legacy && hdr->dir == RAIL_RPC_REPLY))
			hdr->dir = RAIL_RPC_CALL;
		if (hdr->body_len)
			return RAIL_RPCRDMA_NOMSG_BODY;
		if (!hdr->has_call_chunk && hdr->dir == RAIL_RPC_CALL)
			return RAIL_RPCRDMA_NOMSG_NO_CALL;
		if (!hdr->has_call_chunk && !hdr->lists.has_reply_chunk)
			return RAIL_RPCRDMA_NOMSG_NO_REPLY;
		*base = hdr->has_call_chunk ? hdr->call_len : hdr->reply_len;
	}
	if (*base < (hdr->dir == RAIL_RPC_CALL ? RAIL_RPC_CALL_MIN : RAIL_RPC_REPLY_MIN))
		return RAIL_RPCRDMA_RPC_SHORT;
	return RAIL_RPCRDMA_OK;
}

/* The whole header has been walked: hold its parts against each other. */
static enum rail_rpcrdma_reason check_message(const struct walk *w,
					      const struct rail_rpcrdma_rules *rules,
					      struct rail_rpcrdma_hdr *hdr)
{
	enum rail_rpcrdma_reason reason;
	__u32 base;

	reason = find_message(w, rules, hdr, &base);
	if (reason)
		return reason;

	if (hdr->dir == RAIL_RPC_REPLY) {
		/* RFC 8166: a responder exposes no memory. */
		if (hdr->lists.nr_read_segs && !rules->legacy)
			return RAIL_RPCRDMA_READ_REPLY;
	} else {
		if (w->write_hole)
			return RAIL_RPCRDMA_WRITE_ZERO;
		if (w->reply_hole)
			return RAIL_RPCRDMA_REPLY_ZERO;
	}
	if (w->first_pos) {
		/* Only arguments and results are ever eligible (RFC 8166 section 3.4.2). */
		if (w->first_pos < (hdr->dir == RAIL_RPC_CALL ? RAIL_RPC_CALL_MIN :
								RAIL_RPC_ACCEPTED_MIN))
			return RAIL_RPCRDMA_POS_HEADER;
		if (w->last_inline > base)
			return RAIL_RPCRDMA_POS_PAST;
	}
	if (w->moved > U32_MOST - base)
		return RAIL_RPCRDMA_RPC_WRAP;
	hdr->msg_len = base + w->moved;
	if (rules->max_msg && hdr->msg_len > rules->max_msg)
		return RAIL_RPCRDMA_RPC_LONG;
	return RAIL_RPCRDMA_OK;
}

/**
 * rail_rpcrdma_decode() - check a received message and find its parts
 * @buf: the message, contiguous at least as far as the header goes and 8 bytes on
 * @len: its length
 * @rules: what the receiver takes
 * @hdr: filled in
 *
 * RFC 8166 section 4; RFC 5666 section 4 for MSGP and DONE.
 *
 * Return: RAIL_RPCRDMA_OK, or why the message is refused. rail_rpcrdma_answer() says what to do
 * then.
 */
enum rail_rpcrdma_reason rail_rpcrdma_decode(const void *buf, __u32 len,
					     const struct rail_rpcrdma_rules *rules,
					     struct rail_rpcrdma_hdr *hdr)
{
	struct walk w = { .buf = (const __u8 *)buf, .len = len };
	enum rail_rpcrdma_reason reason;

	memset(hdr, 0, sizeof(*hdr));
	hdr->dir = rules->home;
	if (len < RAIL_RPCRDMA_FIXED_LEN)
		return RAIL_RPCRDMA_SHORT;
	hdr->xid = take(&w);
	hdr->vers = take(&w);
	hdr->credit = take(&w);
	hdr->proc = take(&w);
	if (hdr->vers != RAIL_RPCRDMA_VERSION)
		return RAIL_RPCRDMA_BAD_VERS;

	switch (hdr->proc) {
	case RAIL_RPCRDMA_MSG:
	case RAIL_RPCRDMA_NOMSG:
		break;
	case RAIL_RPCRDMA_MSGP:
		reason = decode_msgp(&w, rules, hdr);
		if (reason)
			return reason;
		break;
	case RAIL_RPCRDMA_DONE:
		hdr->body_at = w.at;
		return left(&w) ? RAIL_RPCRDMA_DONE_SIZE : RAIL_RPCRDMA_OK;
	case RAIL_RPCRDMA_ERROR:
		return decode_error(&w, hdr);
	default:
		return RAIL_RPCRDMA_BAD_PROC;
	}

	reason = decode_read_list(&w, rules, hdr);
	if (reason)
		return reason;
	reason = decode_write_list(&w, rules, hdr);
	if (reason)
		return reason;
	reason = decode_reply_chunk(&w, rules, hdr);
	if (reason)
		return reason;
	hdr->body_at = w.at;
	hdr->body_len = left(&w);
	return check_message(&w, rules, hdr);
}

/**
 * rail_rpcrdma_answer() - what the sender of a refused message is told
 * @reason: what rail_rpcrdma_decode() returned, not RAIL_RPCRDMA_OK
 * @hdr: what it filled in
 *
 * RFC 8166 section 4.5. Nothing that may itself be an answer is ever answered, so two ends cannot
 * bat errors at each other: an ERROR, in any version; a DONE; a reply. A header that is refused
 * before it says its direction counts as one of the receiver's own, struct rail_rpcrdma_rules.
 */
enum rail_rpcrdma_verdict rail_rpcrdma_answer(enum rail_rpcrdma_reason reason,
					      const struct rail_rpcrdma_hdr *hdr)
{
	if (reason == RAIL_RPCRDMA_OK || reason == RAIL_RPCRDMA_SHORT)
		return RAIL_RPCRDMA_DROP;
	if (hdr->proc == RAIL_RPCRDMA_ERROR || hdr->proc == RAIL_RPCRDMA_DONE)
		return RAIL_RPCRDMA_DROP;
	if (hdr->dir != RAIL_RPC_CALL)
		return RAIL_RPCRDMA_DROP;
	return reason == RAIL_RPCRDMA_BAD_VERS ? RAIL_RPCRDMA_SEND_ERR_VERS :
						 RAIL_RPCRDMA_SEND_ERR_CHUNK;
}

static const char * const reason_text[RAIL_RPCRDMA_NR_REASONS] = {
	[RAIL_RPCRDMA_OK] = "no error",
	[RAIL_RPCRDMA_SHORT] = "shorter than the fixed part of a header",
	[RAIL_RPCRDMA_BAD_VERS] = "version is not 1",
	[RAIL_RPCRDMA_BAD_PROC] = "unknown procedure",
	[RAIL_RPCRDMA_READ_SHORT] = "read list runs past the end",
	[RAIL_RPCRDMA_READ_WORD] = "read list entry marked by neither 0 nor 1",
	[RAIL_RPCRDMA_READ_SEGS] = "more read segments than the receiver takes",
	[RAIL_RPCRDMA_READ_CHUNKS] = "more read chunks than the receiver takes",
	[RAIL_RPCRDMA_READ_ZERO] = "read segment of no bytes",
	[RAIL_RPCRDMA_READ_WRAP] = "read segments add up to more than 32 bits",
	[RAIL_RPCRDMA_READ_ADDR] = "read segment runs past the last address",
	[RAIL_RPCRDMA_READ_REPLY] = "read list in a reply",
	[RAIL_RPCRDMA_POS_ALIGN] = "read position is no multiple of 4",
	[RAIL_RPCRDMA_POS_BACK] = "read positions run backwards",
	[RAIL_RPCRDMA_POS_INSIDE] = "read position lies inside the chunk before it",
	[RAIL_RPCRDMA_POS_ZERO] = "read position 0 beside an inline message",
	[RAIL_RPCRDMA_POS_HEADER] = "read position lies in the RPC header",
	[RAIL_RPCRDMA_POS_PAST] = "read position lies past the message",
	[RAIL_RPCRDMA_WRITE_SHORT] = "write list runs past the end",
	[RAIL_RPCRDMA_WRITE_WORD] = "write list entry marked by neither 0 nor 1",
	[RAIL_RPCRDMA_WRITE_CHUNKS] = "more write chunks than the receiver takes",
	[RAIL_RPCRDMA_WRITE_COUNT] = "write chunk counts more segments than the message holds",
	[RAIL_RPCRDMA_WRITE_SEGS] = "write chunk of more segments than the receiver takes",
	[RAIL_RPCRDMA_WRITE_ZERO] = "write chunk with a segment of no bytes among others",
	[RAIL_RPCRDMA_WRITE_WRAP] = "write segments add up to more than 32 bits",
	[RAIL_RPCRDMA_WRITE_ADDR] = "write segment runs past the last address",
	[RAIL_RPCRDMA_REPLY_SHORT] = "reply chunk runs past the end",
	[RAIL_RPCRDMA_REPLY_WORD] = "reply chunk marked by neither 0 nor 1",
	[RAIL_RPCRDMA_REPLY_COUNT] = "reply chunk counts more segments than the message holds",
	[RAIL_RPCRDMA_REPLY_SEGS] = "reply chunk of more segments than the receiver takes",
	[RAIL_RPCRDMA_REPLY_ZERO] = "reply chunk with a segment of no bytes among others",
	[RAIL_RPCRDMA_REPLY_WRAP] = "reply segments add up to more than 32 bits",
	[RAIL_RPCRDMA_REPLY_ADDR] = "reply segment runs past the last address",
	[RAIL_RPCRDMA_RPC_SHORT] = "RPC message shorter than any can be",
	[RAIL_RPCRDMA_RPC_XID] = "XID differs from that of the RPC message",
	[RAIL_RPCRDMA_RPC_TYPE] = "RPC message is neither call nor reply",
	[RAIL_RPCRDMA_RPC_WRAP] = "RPC message longer than 32 bits",
	[RAIL_RPCRDMA_RPC_LONG] = "RPC message longer than the receiver takes",
	[RAIL_RPCRDMA_NOMSG_BODY] = "NOMSG with an inline message",
	[RAIL_RPCRDMA_NOMSG_NO_CALL] = "NOMSG call without a position-zero chunk",
	[RAIL_RPCRDMA_NOMSG_NO_REPLY] = "NOMSG reply without a reply chunk",
	[RAIL_RPCRDMA_MSGP_OFF] = "MSGP, which is switched off",
	[RAIL_RPCRDMA_MSGP_SHORT] = "MSGP without its alignment",
	[RAIL_RPCRDMA_MSGP_ALIGN] = "MSGP alignment is no power of two from 4 to 65536",
	[RAIL_RPCRDMA_MSGP_THRESH] = "MSGP threshold is 0",
	[RAIL_RPCRDMA_DONE_SIZE] = "DONE is not 16 bytes long",
	[RAIL_RPCRDMA_ERROR_SIZE] = "ERROR of the wrong length",
	[RAIL_RPCRDMA_ERROR_CODE] = "ERROR with an unknown code",
	[RAIL_RPCRDMA_ERROR_RANGE] = "ERROR with a version range that is empty",
	[RAIL_RPCRDMA_RET_CHUNKS] = "returned list of other chunks than were offered",
	[RAIL_RPCRDMA_RET_SEGS] = "returned chunk of other segments than were offered",
	[RAIL_RPCRDMA_RET_HANDLE] = "returned segment with another handle than was offered",
	[RAIL_RPCRDMA_RET_OFFSET] = "returned segment with another offset than was offered",
	[RAIL_RPCRDMA_RET_LENGTH] = "returned segment longer than was offered",
	[RAIL_RPCRDMA_RET_HOLE] = "returned segment used though the one before is not full",
};

/**
 * rail_rpcrdma_reason_text() - the reason in words, for a log line
 * @reason: what a function here returned
 */
const char *rail_rpcrdma_reason_text(enum rail_rpcrdma_reason reason)
{
	if ((unsigned int)reason >= RAIL_RPCRDMA_NR_REASONS)
		return "unknown reason";
	return reason_text[reason];
}

/**
 * rail_rpcrdma_next_read() - the next chunk of the read list (RFC 8166 section 4.3.1)
 * @buf: the decoded buffer
 * @it: from rail_rpcrdma_read_iter()
 * @chunk: filled in
 *
 * Return: false after the last one.
 */
bool rail_rpcrdma_next_read(const void *buf, struct rail_rpcrdma_iter *it,
			    struct rail_rpcrdma_chunk *chunk)
{
	const __u8 *p = (const __u8 *)buf + it->at;

	if (!it->left)
		return false;
	chunk->position = rail_get_be32(p + 4);
	chunk->length = 0;
	chunk->nr_segs = 0;
	chunk->at = it->at + 8;
	chunk->stride = RAIL_RPCRDMA_READ_LEN;
	do {
		chunk->length += rail_get_be32(p + 12);
		chunk->nr_segs++;
		it->at += RAIL_RPCRDMA_READ_LEN;
		it->left--;
		p += RAIL_RPCRDMA_READ_LEN;
	} while (it->left && rail_get_be32(p + 4) == chunk->position);
	return true;
}

/* @at is where the segment count stands. Returns where the chunk ends. */
static __u32 load_chunk(const void *buf, __u32 at, struct rail_rpcrdma_chunk *chunk)
{
	const __u8 *p = (const __u8 *)buf + at;
	__u32 n;

	chunk->position = 0;
	chunk->length = 0;
	chunk->nr_segs = rail_get_be32(p);
	chunk->at = at + 4;
	chunk->stride = RAIL_RPCRDMA_SEG_LEN;
	for (n = 0; n < chunk->nr_segs; n++)
		chunk->length += rail_get_be32(p + 8 + n * RAIL_RPCRDMA_SEG_LEN);
	return chunk->at + chunk->nr_segs * RAIL_RPCRDMA_SEG_LEN;
}

/**
 * rail_rpcrdma_next_write() - the next chunk of the write list (RFC 8166 section 4.3.2)
 * @buf: the decoded buffer
 * @it: from rail_rpcrdma_write_iter()
 * @chunk: filled in
 *
 * Return: false after the last one.
 */
bool rail_rpcrdma_next_write(const void *buf, struct rail_rpcrdma_iter *it,
			     struct rail_rpcrdma_chunk *chunk)
{
	if (!it->left)
		return false;
	it->left--;
	it->at = load_chunk(buf, it->at + 4, chunk);
	return true;
}

/**
 * rail_rpcrdma_reply_chunk() - the reply chunk (RFC 8166 section 4.3.3)
 * @buf: the decoded buffer
 * @lists: of its header
 * @chunk: filled in
 *
 * Return: false when there is none.
 */
bool rail_rpcrdma_reply_chunk(const void *buf, const struct rail_rpcrdma_lists *lists,
			      struct rail_rpcrdma_chunk *chunk)
{
	if (!lists->has_reply_chunk)
		return false;
	load_chunk(buf, lists->reply_at + 4, chunk);
	return true;
}

static enum rail_rpcrdma_reason check_chunk(const void *call,
					    const struct rail_rpcrdma_chunk *offered,
					    const void *reply,
					    const struct rail_rpcrdma_chunk *returned)
{
	struct rail_rpcrdma_seg was, is;
	bool open = true;
	__u32 n;

	if (offered->nr_segs != returned->nr_segs)
		return RAIL_RPCRDMA_RET_SEGS;
	for (n = 0; n < offered->nr_segs; n++) {
		rail_rpcrdma_get_seg(call, offered, n, &was);
		rail_rpcrdma_get_seg(reply, returned, n, &is);
		if (is.handle != was.handle)
			return RAIL_RPCRDMA_RET_HANDLE;
		if (is.offset != was.offset)
			return RAIL_RPCRDMA_RET_OFFSET;
		if (is.length > was.length)
			return RAIL_RPCRDMA_RET_LENGTH;
		if (is.length && !open)
			return RAIL_RPCRDMA_RET_HOLE;
		if (is.length < was.length)
			open = false;
	}
	return RAIL_RPCRDMA_OK;
}

/**
 * rail_rpcrdma_check_returned() - are the chunks of a reply those that the call offered?
 * @call: header of the call, as it was sent
 * @offered: lists in it
 * @reply: header of the reply
 * @returned: lists in it
 *
 * A responder changes nothing but the lengths, and fills the segments in turn (RFC 8166 section
 * 3.4.6). A client that does not look believes a length that it never offered. A list that is
 * left out says that nothing was written.
 */
enum rail_rpcrdma_reason rail_rpcrdma_check_returned(const void *call,
						     const struct rail_rpcrdma_lists *offered,
						     const void *reply,
						     const struct rail_rpcrdma_lists *returned)
{
	struct rail_rpcrdma_iter call_it, reply_it;
	struct rail_rpcrdma_chunk was, is;
	enum rail_rpcrdma_reason reason;

	if (returned->nr_write_chunks && returned->nr_write_chunks != offered->nr_write_chunks)
		return RAIL_RPCRDMA_RET_CHUNKS;
	rail_rpcrdma_write_iter(&call_it, offered);
	rail_rpcrdma_write_iter(&reply_it, returned);
	while (rail_rpcrdma_next_write(reply, &reply_it, &is) &&
	       rail_rpcrdma_next_write(call, &call_it, &was)) {
		reason = check_chunk(call, &was, reply, &is);
		if (reason)
			return reason;
	}
	if (!rail_rpcrdma_reply_chunk(reply, returned, &is))
		return RAIL_RPCRDMA_OK;
	if (!rail_rpcrdma_reply_chunk(call, offered, &was))
		return RAIL_RPCRDMA_RET_CHUNKS;
	return check_chunk(call, &was, reply, &is);
}

/* What an encoder waits for. In a chunk, only segments and its end may come. */
enum {
	ENC_FIXED,
	ENC_MSGP,
	ENC_READS,
	ENC_WRITES,
	ENC_WRITE_CHUNK,
	ENC_REPLY,
	ENC_REPLY_CHUNK,
	ENC_NOMSG,	/* complete, no body may follow */
	ENC_BODY,
	ENC_BAD,
};

/* The bit of the proc has to be kept until the lists are done: NOMSG has no body. */
#define ENC_F_NOMSG	0x80

static __u8 enc_state(const struct rail_rpcrdma_enc *enc)
{
	return enc->state & ~ENC_F_NOMSG;
}

static void enc_move(struct rail_rpcrdma_enc *enc, __u8 state)
{
	enc->state = (enc->state & ENC_F_NOMSG) | state;
}

/* Room for @len bytes, if the encoder is in @state; marks it bad if not. */
static __u8 *enc_room(struct rail_rpcrdma_enc *enc, __u8 state, __u32 len)
{
	__u8 *p;

	if (enc_state(enc) != state || len > enc->size - enc->len) {
		enc->state = ENC_BAD;
		return NULL;
	}
	p = enc->buf + enc->len;
	enc->len += len;
	return p;
}

static void put_seg(__u8 *p, const struct rail_rpcrdma_seg *seg)
{
	rail_put_be32(p, seg->handle);
	rail_put_be32(p + 4, seg->length);
	rail_put_be64(p + 8, seg->offset);
}

/**
 * rail_rpcrdma_enc_init() - begin to write a message
 * @enc: writer
 * @buf: where to
 * @size: bytes there
 */
void rail_rpcrdma_enc_init(struct rail_rpcrdma_enc *enc, void *buf, __u32 size)
{
	memset(enc, 0, sizeof(*enc));
	enc->buf = (__u8 *)buf;
	enc->size = size;
	enc->state = ENC_FIXED;
}

static __u8 *put_fixed(struct rail_rpcrdma_enc *enc, __u32 xid, __u32 credit, __u32 proc,
		       __u32 len)
{
	__u8 *p = enc_room(enc, ENC_FIXED, len);

	if (!p)
		return NULL;
	rail_put_be32(p, xid);
	rail_put_be32(p + 4, RAIL_RPCRDMA_VERSION);
	rail_put_be32(p + 8, credit);
	rail_put_be32(p + 12, proc);
	return p;
}

/**
 * rail_rpcrdma_enc_fixed() - write the fixed part of a MSG, NOMSG or MSGP
 * @enc: writer
 * @xid: of the RPC message
 * @credit: asked for, or granted
 * @proc: which of the three
 */
void rail_rpcrdma_enc_fixed(struct rail_rpcrdma_enc *enc, __u32 xid, __u32 credit,
			    enum rail_rpcrdma_proc proc)
{
	if (proc > RAIL_RPCRDMA_MSGP) {
		enc->state = ENC_BAD;
		return;
	}
	if (!put_fixed(enc, xid, credit, proc, RAIL_RPCRDMA_FIXED_LEN))
		return;
	enc->state = proc == RAIL_RPCRDMA_MSGP ? ENC_MSGP : ENC_READS;
	enc->lists.read_at = enc->len;
	if (proc == RAIL_RPCRDMA_NOMSG)
		enc->state |= ENC_F_NOMSG;
}

/**
 * rail_rpcrdma_enc_msgp() - write the two words that only a MSGP has
 * @enc: writer
 * @align: alignment
 * @thresh: threshold
 */
void rail_rpcrdma_enc_msgp(struct rail_rpcrdma_enc *enc, __u32 align, __u32 thresh)
{
	__u8 *p = enc_room(enc, ENC_MSGP, RAIL_RPCRDMA_MSGP_LEN);

	if (!p)
		return;
	rail_put_be32(p, align);
	rail_put_be32(p + 4, thresh);
	enc->lists.read_at = enc->len;
	enc_move(enc, ENC_READS);
}

/**
 * rail_rpcrdma_enc_read() - write a segment of the read list
 * @enc: writer
 * @position: of the chunk it belongs to
 * @seg: segment
 */
void rail_rpcrdma_enc_read(struct rail_rpcrdma_enc *enc, __u32 position,
			   const struct rail_rpcrdma_seg *seg)
{
	__u8 *p = enc_room(enc, ENC_READS, RAIL_RPCRDMA_READ_LEN);

	if (!p)
		return;
	rail_put_be32(p, 1);
	rail_put_be32(p + 4, position);
	put_seg(p + 8, seg);
	enc->lists.nr_read_segs++;
}

static void put_word(struct rail_rpcrdma_enc *enc, __u8 state, __u32 word, __u8 next)
{
	__u8 *p = enc_room(enc, state, 4);

	if (!p)
		return;
	rail_put_be32(p, word);
	enc_move(enc, next);
}

/**
 * rail_rpcrdma_enc_reads_end() - end the read list, which may be empty
 * @enc: writer
 */
void rail_rpcrdma_enc_reads_end(struct rail_rpcrdma_enc *enc)
{
	put_word(enc, ENC_READS, 0, ENC_WRITES);
	enc->lists.write_at = enc->len;
}

/* "There is one" and a count that chunk_end puts right. */
static void chunk_begin(struct rail_rpcrdma_enc *enc, __u8 state, __u8 next)
{
	__u8 *p = enc_room(enc, state, 8);

	if (!p)
		return;
	rail_put_be32(p, 1);
	rail_put_be32(p + 4, 0);
	enc->count_at = enc->len - 4;
	enc->nr_segs = 0;
	enc_move(enc, next);
}

/**
 * rail_rpcrdma_enc_write_begin() - begin a write chunk; its segments follow
 * @enc: writer
 */
void rail_rpcrdma_enc_write_begin(struct rail_rpcrdma_enc *enc)
{
	chunk_begin(enc, ENC_WRITES, ENC_WRITE_CHUNK);
}

/**
 * rail_rpcrdma_enc_writes_end() - end the write list, which may be empty
 * @enc: writer
 */
void rail_rpcrdma_enc_writes_end(struct rail_rpcrdma_enc *enc)
{
	put_word(enc, ENC_WRITES, 0, ENC_REPLY);
	enc->lists.reply_at = enc->len;
}

/**
 * rail_rpcrdma_enc_reply_begin() - begin the reply chunk; its segments follow
 * @enc: writer
 */
void rail_rpcrdma_enc_reply_begin(struct rail_rpcrdma_enc *enc)
{
	chunk_begin(enc, ENC_REPLY, ENC_REPLY_CHUNK);
}

static __u8 enc_after_lists(const struct rail_rpcrdma_enc *enc)
{
	return enc->state & ENC_F_NOMSG ? ENC_NOMSG : ENC_BODY;
}

/**
 * rail_rpcrdma_enc_no_reply() - write that there is no reply chunk
 * @enc: writer
 */
void rail_rpcrdma_enc_no_reply(struct rail_rpcrdma_enc *enc)
{
	put_word(enc, ENC_REPLY, 0, enc_after_lists(enc));
}

/**
 * rail_rpcrdma_enc_seg() - write a segment of the open write or reply chunk
 * @enc: writer
 * @seg: segment
 */
void rail_rpcrdma_enc_seg(struct rail_rpcrdma_enc *enc, const struct rail_rpcrdma_seg *seg)
{
	__u8 state = enc_state(enc);
	__u8 *p;

	if (state != ENC_WRITE_CHUNK)
		state = ENC_REPLY_CHUNK;
	p = enc_room(enc, state, RAIL_RPCRDMA_SEG_LEN);
	if (!p)
		return;
	put_seg(p, seg);
	enc->nr_segs++;
}

/**
 * rail_rpcrdma_enc_chunk_end() - end the open write or reply chunk
 * @enc: writer
 */
void rail_rpcrdma_enc_chunk_end(struct rail_rpcrdma_enc *enc)
{
	switch (enc_state(enc)) {
	case ENC_WRITE_CHUNK:
		enc->lists.nr_write_chunks++;
		enc_move(enc, ENC_WRITES);
		break;
	case ENC_REPLY_CHUNK:
		enc->lists.has_reply_chunk = true;
		enc->lists.nr_reply_segs = enc->nr_segs;
		enc_move(enc, enc_after_lists(enc));
		break;
	default:
		enc->state = ENC_BAD;
		return;
	}
	rail_put_be32(enc->buf + enc->count_at, enc->nr_segs);
}

/**
 * rail_rpcrdma_enc_returned() - write a chunk of a call as a responder hands it back
 * @enc: writer; where a write chunk may begin it is one, where the reply chunk is due it is that
 * @call: header of the call
 * @chunk: chunk in it
 * @written: bytes written to it
 *
 * RFC 8166 section 3.4.6: the same handles and offsets, with the lengths that were used. More
 * bytes than the chunk has mark the writer bad.
 */
void rail_rpcrdma_enc_returned(struct rail_rpcrdma_enc *enc, const void *call,
			       const struct rail_rpcrdma_chunk *chunk, __u32 written)
{
	struct rail_rpcrdma_seg seg;
	__u32 n;

	if (enc_state(enc) == ENC_REPLY)
		rail_rpcrdma_enc_reply_begin(enc);
	else
		rail_rpcrdma_enc_write_begin(enc);
	for (n = 0; n < chunk->nr_segs; n++) {
		rail_rpcrdma_get_seg(call, chunk, n, &seg);
		if (seg.length > written)
			seg.length = written;
		written -= seg.length;
		rail_rpcrdma_enc_seg(enc, &seg);
	}
	rail_rpcrdma_enc_chunk_end(enc);
	if (written)
		enc->state = ENC_BAD;
}

/**
 * rail_rpcrdma_patch() - put the lengths that were used into a chunk already written
 * @buf: header, valid
 * @chunk: chunk in it, with the lengths that were offered
 * @written: bytes written to it
 *
 * Return: false, with nothing changed, when the chunk has not that many bytes.
 */
bool rail_rpcrdma_patch(void *buf, const struct rail_rpcrdma_chunk *chunk, __u32 written)
{
	__u8 *p = (__u8 *)buf + chunk->at;
	__u32 n, length;

	if (written > chunk->length)
		return false;
	for (n = 0; n < chunk->nr_segs; n++, p += chunk->stride) {
		length = rail_get_be32(p + 4);
		if (length > written)
			length = written;
		written -= length;
		rail_put_be32(p + 4, length);
	}
	return true;
}

/**
 * rail_rpcrdma_enc_body() - append bytes of the RPC message
 * @enc: writer of a MSG or MSGP whose lists are complete
 * @data: bytes
 * @len: how many
 */
void rail_rpcrdma_enc_body(struct rail_rpcrdma_enc *enc, const void *data, __u32 len)
{
	__u8 *p = enc_room(enc, ENC_BODY, len);

	if (p && len)
		memcpy(p, data, len);
}

/**
 * rail_rpcrdma_enc_done() - write a DONE (RFC 5666 section 4), which is then complete
 * @enc: writer
 * @xid: of the reply whose read chunks have been read
 * @credit: asked for
 */
void rail_rpcrdma_enc_done(struct rail_rpcrdma_enc *enc, __u32 xid, __u32 credit)
{
	if (put_fixed(enc, xid, credit, RAIL_RPCRDMA_DONE, RAIL_RPCRDMA_DONE_LEN))
		enc->state = ENC_NOMSG;
}

/**
 * rail_rpcrdma_enc_err_vers() - write an ERR_VERS (RFC 8166 section 4.5.1), then complete
 * @enc: writer
 * @xid: of the message it answers
 * @credit: granted
 * @low: lowest version spoken here
 * @high: highest version spoken here
 */
void rail_rpcrdma_enc_err_vers(struct rail_rpcrdma_enc *enc, __u32 xid, __u32 credit,
			       __u32 low, __u32 high)
{
	__u8 *p = put_fixed(enc, xid, credit, RAIL_RPCRDMA_ERROR, RAIL_RPCRDMA_ERR_VERS_LEN);

	if (!p)
		return;
	rail_put_be32(p + 16, RAIL_RPCRDMA_ERR_VERS);
	rail_put_be32(p + 20, low);
	rail_put_be32(p + 24, high);
	enc->state = ENC_NOMSG;
}

/**
 * rail_rpcrdma_enc_err_chunk() - write an ERR_CHUNK (RFC 8166 section 4.5.2), then complete
 * @enc: writer
 * @xid: of the message it answers
 * @credit: granted
 */
void rail_rpcrdma_enc_err_chunk(struct rail_rpcrdma_enc *enc, __u32 xid, __u32 credit)
{
	__u8 *p = put_fixed(enc, xid, credit, RAIL_RPCRDMA_ERROR, RAIL_RPCRDMA_ERR_CHUNK_LEN);

	if (!p)
		return;
	rail_put_be32(p + 16, RAIL_RPCRDMA_ERR_CHUNK);
	enc->state = ENC_NOMSG;
}

/**
 * rail_rpcrdma_enc_finish() - how long the message is
 * @enc: writer
 *
 * Return: bytes, or 0 when something did not fit, came out of order or is not complete.
 */
__u32 rail_rpcrdma_enc_finish(const struct rail_rpcrdma_enc *enc)
{
	__u8 state = enc_state(enc);

	return state == ENC_BODY || state == ENC_NOMSG ? enc->len : 0;
}

static __u32 inline_bytes(__u8 size)
{
	return (size + 1) * RAIL_RPCRDMA_INLINE_UNIT;
}

static __u8 inline_size(__u32 bytes)
{
	if (bytes > RAIL_RPCRDMA_INLINE_MAX)
		bytes = RAIL_RPCRDMA_INLINE_MAX;
	/* Less than one unit cannot be said. */
	return bytes < RAIL_RPCRDMA_INLINE_UNIT ? 0 : bytes / RAIL_RPCRDMA_INLINE_UNIT - 1;
}

/**
 * rail_rpcrdma_cm_decode() - what the peer said of itself at connect time (RFC 8797 section 4)
 * @data: its private data
 * @len: bytes there; 0 when there is none
 * @conn: filled in, with the defaults of RFC 8166 section 3.3.3 where the peer said nothing
 *
 * Some providers pad the data or put bytes of their own before it, so it is looked for at every
 * word. Data of an unknown version counts as none; it is never a reason to refuse a connection.
 *
 * Return: whether the peer said anything.
 */
bool rail_rpcrdma_cm_decode(const void *data, __u32 len, struct rail_rpcrdma_conn *conn)
{
	const __u8 *p = (const __u8 *)data;

	conn->send_max = RAIL_RPCRDMA_INLINE_DEFAULT;
	conn->recv_max = RAIL_RPCRDMA_INLINE_DEFAULT;
	conn->remote_inval = false;
	for (; len >= RAIL_RPCRDMA_CM_LEN; p += 4, len -= 4) {
		if (rail_get_be32(p) != RAIL_RPCRDMA_CM_MAGIC || p[4] != RAIL_RPCRDMA_CM_VERSION)
			continue;
		conn->remote_inval = p[5] & RAIL_RPCRDMA_CM_F_REMOTE_INVAL;
		conn->send_max = inline_bytes(p[6]);
		conn->recv_max = inline_bytes(p[7]);
		return true;
	}
	return false;
}

/**
 * rail_rpcrdma_cm_encode() - private data for a connect request or an accept (RFC 8797 section 4)
 * @data: RAIL_RPCRDMA_CM_LEN bytes
 * @conn: what to say; sizes are rounded down to a multiple of 1024
 */
void rail_rpcrdma_cm_encode(void *data, const struct rail_rpcrdma_conn *conn)
{
	__u8 *p = (__u8 *)data;

	rail_put_be32(p, RAIL_RPCRDMA_CM_MAGIC);
	p[4] = RAIL_RPCRDMA_CM_VERSION;
	p[5] = conn->remote_inval ? RAIL_RPCRDMA_CM_F_REMOTE_INVAL : 0;
	p[6] = inline_size(conn->send_max);
	p[7] = inline_size(conn->recv_max);
}

static __u32 less(__u32 a, __u32 b)
{
	return a < b ? a : b;
}

/**
 * rail_rpcrdma_agree() - what both ends of a connection go by (RFC 8797 section 4)
 * @client: what the connecting end said
 * @server: what the listening end said
 * @agreed: filled in
 */
void rail_rpcrdma_agree(const struct rail_rpcrdma_conn *client,
			const struct rail_rpcrdma_conn *server,
			struct rail_rpcrdma_agreed *agreed)
{
	agreed->call_max = less(client->send_max, server->recv_max);
	agreed->reply_max = less(server->send_max, client->recv_max);
	agreed->remote_inval = client->remote_inval && server->remote_inval;
}
