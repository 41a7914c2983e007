// SPDX-License-Identifier: GPL-2.0-only
/*
 * Codec of RTRS 2.0. See the header for how it is meant to be used.
 */
#include <rail/wire/rtrs.h>

#define MAX_ERRNO_ON_WIRE	4095	/* what the kernel takes for an error */

static const char * const reason_text[RAIL_RTRS_NR_REASONS] = {
	[RAIL_RTRS_OK] = "no error",
	[RAIL_RTRS_SHORT] = "shorter than such a message is",
	[RAIL_RTRS_BAD_MAGIC] = "bad magic number",
	[RAIL_RTRS_BAD_VERSION] = "major version of the protocol is not 2",
	[RAIL_RTRS_BAD_TYPE] = "not the type of message that is due here",
	[RAIL_RTRS_CID_NUM] = "number of connections is not 2 to 4096",
	[RAIL_RTRS_CID] = "connection number is not below the number of connections",
	[RAIL_RTRS_REFUSED] = "refused by the peer",
	[RAIL_RTRS_QUEUE_DEPTH] = "queue depth is not 1 to 65535",
	[RAIL_RTRS_IO_SIZE] = "largest I/O is less than a sector",
	[RAIL_RTRS_HDR_SIZE] = "room for headers holds not even RTRS's own",
	[RAIL_RTRS_CHUNK_SIZE] = "chunk is too large for the offsets that the queue depth leaves",
	[RAIL_RTRS_NAME_END] = "session name has no end",
	[RAIL_RTRS_NAME_EMPTY] = "session name is empty",
	[RAIL_RTRS_NAME_CHAR] = "session name with '/', '.' or a control character",
	[RAIL_RTRS_SG_CNT] = "number of descriptors does not divide the queue depth",
	[RAIL_RTRS_SG_LEN] = "descriptor does not cover whole chunks",
	[RAIL_RTRS_SG_ADDR] = "descriptor runs past the last address",
	[RAIL_RTRS_SG_TOTAL] = "descriptors cover more or fewer chunks than the queue depth",
	[RAIL_RTRS_IMM_TYPE] = "immediate value of an unknown type",
	[RAIL_RTRS_IMM_BUF] = "buffer id that does not exist",
	[RAIL_RTRS_IMM_OFF] = "immediate value with an offset past the chunk",
	[RAIL_RTRS_HDR_PAST] = "header runs past the chunk",
	[RAIL_RTRS_USR_LEN] = "user header longer than what comes before the RTRS header",
	[RAIL_RTRS_USR_LONG] = "user header longer than the room for headers",
	[RAIL_RTRS_DATA_LONG] = "data longer than the largest I/O",
	[RAIL_RTRS_FLAGS] = "unknown flags",
	[RAIL_RTRS_READ_SG] = "read does not say in one descriptor where its data goes",
	[RAIL_RTRS_READ_LEN] = "read of more data than its descriptor holds",
	[RAIL_RTRS_READ_ADDR] = "read's descriptor runs past the last address",
	[RAIL_RTRS_WRITTEN] = "fewer or more bytes were written than the header speaks of",
	[RAIL_RTRS_RKEY_BUF] = "new rkey for another buffer than the answer is for",
	[RAIL_RTRS_RSPS_COUNT] = "number of answers is not what the message holds",
};

/**
 * rail_rtrs_reason_text() - the reason in words, for a log line
 * @reason: what a function here returned
 */
const char *rail_rtrs_reason_text(enum rail_rtrs_reason reason)
{
	if ((unsigned int)reason >= RAIL_RTRS_NR_REASONS)
		return "unknown reason";
	return reason_text[reason];
}

static __u8 get_ext(const struct rail_rtrs_ext *ext)
{
	if (memcmp(ext->tag, RAIL_RTRS_EXT_TAG, sizeof(ext->tag)))
		return 0;
	return ext->bits;
}

/* None: not even the tag, so that it is as others' is. */
static void put_ext(struct rail_rtrs_ext *ext, __u8 bits)
{
	if (!bits)
		return;
	memcpy(ext->tag, RAIL_RTRS_EXT_TAG, sizeof(ext->tag));
	ext->bits = bits;
}

static void get_mem(struct rail_rtrs_mem *mem, const struct rail_rtrs_sg *sg)
{
	mem->addr = __le64_to_cpu(sg->addr);
	mem->key = __le32_to_cpu(sg->key);
	mem->len = __le32_to_cpu(sg->len);
}

static void put_mem(struct rail_rtrs_sg *sg, const struct rail_rtrs_mem *mem)
{
	sg->addr = __cpu_to_le64(mem->addr);
	sg->key = __cpu_to_le32(mem->key);
	sg->len = __cpu_to_le32(mem->len);
}

/**
 * rail_rtrs_params_init() - what a path goes by, from what was agreed
 * @params: filled in
 * @queue_depth: chunks
 * @max_io_size: most bytes of data in one
 * @max_hdr_size: most bytes of headers in one
 * @new_rkey: a new rkey follows every I/O
 *
 * The offset in an immediate value has the bits that the buffer ids leave: a deep queue has
 * small chunks.
 */
enum rail_rtrs_reason rail_rtrs_params_init(struct rail_rtrs_params *params, __u32 queue_depth,
					    __u32 max_io_size, __u32 max_hdr_size, bool new_rkey)
{
	__u8 buf_bits = 0;
	__u64 chunk;

	memset(params, 0, sizeof(*params));
	if (!queue_depth || queue_depth > RAIL_RTRS_MAX_QUEUE_DEPTH)
		return RAIL_RTRS_QUEUE_DEPTH;
	if (max_io_size < 512)
		return RAIL_RTRS_IO_SIZE;
	if (max_hdr_size < RAIL_RTRS_REQ_HDR_MAX)
		return RAIL_RTRS_HDR_SIZE;
	while (1U << buf_bits < queue_depth)
		buf_bits++;
	chunk = (__u64)max_io_size + max_hdr_size;
	if (chunk > 1U << (RAIL_RTRS_IMM_PAYLOAD_BITS - buf_bits))
		return RAIL_RTRS_CHUNK_SIZE;

	params->queue_depth = queue_depth;
	params->max_io_size = max_io_size;
	params->max_hdr_size = max_hdr_size;
	params->chunk_size = chunk;
	params->mem_bits = RAIL_RTRS_IMM_PAYLOAD_BITS - buf_bits;
	params->new_rkey = new_rkey;
	return RAIL_RTRS_OK;
}

/**
 * rail_rtrs_conn_req_decode() - check a connect request's private data
 * @buf: private data, without what the connection manager took for itself before it
 * @len: bytes there; a CM may have padded it
 * @conn: filled in
 */
enum rail_rtrs_reason rail_rtrs_conn_req_decode(const void *buf, __u32 len,
						struct rail_rtrs_conn *conn)
{
	struct rail_rtrs_conn_req msg;

	memset(conn, 0, sizeof(*conn));
	if (len < sizeof(msg))
		return RAIL_RTRS_SHORT;
	rail_wire_fetch(&msg, buf, sizeof(msg));
	if (__le16_to_cpu(msg.magic) != RAIL_RTRS_MAGIC)
		return RAIL_RTRS_BAD_MAGIC;
	conn->version = __le16_to_cpu(msg.version);
	if (conn->version >> 8 != RAIL_RTRS_MAJOR)
		return RAIL_RTRS_BAD_VERSION;
	conn->cid = __le16_to_cpu(msg.cid);
	conn->cid_num = __le16_to_cpu(msg.cid_num);
	/* One for messages and at least one for I/O, or a request would have nowhere to go. */
	if (conn->cid_num < 2 || conn->cid_num > RAIL_RTRS_MAX_CONS)
		return RAIL_RTRS_CID_NUM;
	if (conn->cid >= conn->cid_num)
		return RAIL_RTRS_CID;
	conn->recon_cnt = __le16_to_cpu(msg.recon_cnt);
	conn->first_conn = msg.flags & RAIL_RTRS_CONN_F_FIRST;
	conn->ext = get_ext(&msg.ext);
	memcpy(conn->path_uuid, msg.path_uuid, sizeof(conn->path_uuid));
	memcpy(conn->sess_uuid, msg.sess_uuid, sizeof(conn->sess_uuid));
	return RAIL_RTRS_OK;
}

/**
 * rail_rtrs_conn_req_encode() - write a connect request's private data
 * @msg: where to
 * @conn: what to say; the version is always the one spoken here
 */
void rail_rtrs_conn_req_encode(struct rail_rtrs_conn_req *msg, const struct rail_rtrs_conn *conn)
{
	memset(msg, 0, sizeof(*msg));
	msg->magic = __cpu_to_le16(RAIL_RTRS_MAGIC);
	msg->version = __cpu_to_le16(RAIL_RTRS_VERSION);
	msg->cid = __cpu_to_le16(conn->cid);
	msg->cid_num = __cpu_to_le16(conn->cid_num);
	msg->recon_cnt = __cpu_to_le16(conn->recon_cnt);
	msg->flags = conn->first_conn ? RAIL_RTRS_CONN_F_FIRST : 0;
	put_ext(&msg->ext, conn->ext);
	memcpy(msg->path_uuid, conn->path_uuid, sizeof(msg->path_uuid));
	memcpy(msg->sess_uuid, conn->sess_uuid, sizeof(msg->sess_uuid));
}

/**
 * rail_rtrs_conn_rsp_decode() - check the private data of an accept or a reject
 * @buf: private data
 * @len: bytes there
 * @params: filled in for an accept
 * @error: 0, or with RAIL_RTRS_REFUSED the peer's negative errno
 */
enum rail_rtrs_reason rail_rtrs_conn_rsp_decode(const void *buf, __u32 len,
						struct rail_rtrs_params *params, int *error)
{
	enum rail_rtrs_reason reason;
	struct rail_rtrs_conn_rsp msg;
	int err;

	memset(params, 0, sizeof(*params));
	*error = 0;
	if (len < sizeof(msg))
		return RAIL_RTRS_SHORT;
	rail_wire_fetch(&msg, buf, sizeof(msg));
	if (__le16_to_cpu(msg.magic) != RAIL_RTRS_MAGIC)
		return RAIL_RTRS_BAD_MAGIC;
	if (__le16_to_cpu(msg.version) >> 8 != RAIL_RTRS_MAJOR)
		return RAIL_RTRS_BAD_VERSION;
	err = (__s16)__le16_to_cpu(msg.error);
	if (err) {
		if (err > 0)
			err = -err;
		*error = err < -MAX_ERRNO_ON_WIRE ? -EPROTO : err;
		return RAIL_RTRS_REFUSED;
	}
	reason = rail_rtrs_params_init(params, __le16_to_cpu(msg.queue_depth),
				       __le32_to_cpu(msg.max_io_size),
				       __le32_to_cpu(msg.max_hdr_size),
				       __le32_to_cpu(msg.flags) & RAIL_RTRS_RSP_F_NEW_RKEY);
	if (!reason)
		params->ext = get_ext(&msg.ext);
	return reason;
}

static void put_conn_rsp(struct rail_rtrs_conn_rsp *msg)
{
	memset(msg, 0, sizeof(*msg));
	msg->magic = __cpu_to_le16(RAIL_RTRS_MAGIC);
	msg->version = __cpu_to_le16(RAIL_RTRS_VERSION);
}

/**
 * rail_rtrs_accept_encode() - write the private data of an accept
 * @msg: where to
 * @params: of the path
 */
void rail_rtrs_accept_encode(struct rail_rtrs_conn_rsp *msg,
			     const struct rail_rtrs_params *params)
{
	put_conn_rsp(msg);
	msg->queue_depth = __cpu_to_le16(params->queue_depth);
	msg->max_io_size = __cpu_to_le32(params->max_io_size);
	msg->max_hdr_size = __cpu_to_le32(params->max_hdr_size);
	msg->flags = __cpu_to_le32(params->new_rkey ? RAIL_RTRS_RSP_F_NEW_RKEY : 0);
	put_ext(&msg->ext, params->ext);
}

/**
 * rail_rtrs_reject_encode() - write the private data of a reject
 * @msg: where to
 * @error: negative errno
 */
void rail_rtrs_reject_encode(struct rail_rtrs_conn_rsp *msg, int error)
{
	put_conn_rsp(msg);
	msg->error = __cpu_to_le16(error);
}

/**
 * rail_rtrs_name_check() - may a session have this name?
 * @name: name
 * @size: bytes of the array it is in
 *
 * It becomes the name of a directory in sysfs and is printed in the log.
 */
enum rail_rtrs_reason rail_rtrs_name_check(const char *name, size_t size)
{
	size_t n;

	for (n = 0; n < size && name[n]; n++) {
		unsigned char c = name[n];

		if (c == '/' || c == '.' || c < ' ' || c == 0x7f)
			return RAIL_RTRS_NAME_CHAR;
	}
	if (n == size)
		return RAIL_RTRS_NAME_END;
	return n ? RAIL_RTRS_OK : RAIL_RTRS_NAME_EMPTY;
}

/**
 * rail_rtrs_info_req_decode() - check an INFO_REQ
 * @buf: message
 * @len: its length
 * @name: the session's name, NUL-terminated when the message is not refused
 */
enum rail_rtrs_reason rail_rtrs_info_req_decode(const void *buf, __u32 len,
						char name[RAIL_RTRS_NAME_LEN])
{
	struct rail_rtrs_info_req msg;

	name[0] = '\0';
	if (len < sizeof(msg))
		return RAIL_RTRS_SHORT;
	rail_wire_fetch(&msg, buf, sizeof(msg));
	if (__le16_to_cpu(msg.type) != RAIL_RTRS_INFO_REQ)
		return RAIL_RTRS_BAD_TYPE;
	memcpy(name, msg.name, sizeof(msg.name));
	return rail_rtrs_name_check(name, sizeof(msg.name));
}

/**
 * rail_rtrs_info_req_encode() - write an INFO_REQ
 * @msg: where to
 * @name: the session's name
 */
enum rail_rtrs_reason rail_rtrs_info_req_encode(struct rail_rtrs_info_req *msg, const char *name)
{
	enum rail_rtrs_reason reason;

	memset(msg, 0, sizeof(*msg));
	reason = rail_rtrs_name_check(name, sizeof(msg->name));
	if (reason)
		return reason;
	msg->type = __cpu_to_le16(RAIL_RTRS_INFO_REQ);
	memcpy(msg->name, name, strlen(name));
	return RAIL_RTRS_OK;
}

/**
 * rail_rtrs_info_rsp_decode() - check an INFO_RSP
 * @buf: message
 * @len: its length
 * @params: of the path
 * @sg_cnt: how many descriptors there are for rail_rtrs_info_rsp_get()
 *
 * Together they cover exactly the chunks that the queue depth says, each of them a whole number.
 */
enum rail_rtrs_reason rail_rtrs_info_rsp_decode(const void *buf, __u32 len,
						const struct rail_rtrs_params *params,
						__u32 *sg_cnt)
{
	struct rail_rtrs_info_rsp msg;
	struct rail_rtrs_mem mem;
	__u64 total = 0;
	__u32 cnt, n;

	*sg_cnt = 0;
	if (len < sizeof(msg))
		return RAIL_RTRS_SHORT;
	rail_wire_fetch(&msg, buf, sizeof(msg));
	if (__le16_to_cpu(msg.type) != RAIL_RTRS_INFO_RSP)
		return RAIL_RTRS_BAD_TYPE;
	cnt = __le16_to_cpu(msg.sg_cnt);
	if (!cnt || params->queue_depth % cnt)
		return RAIL_RTRS_SG_CNT;
	/* Chunks that share a key cannot be given new ones one by one. */
	if (params->new_rkey && cnt != params->queue_depth)
		return RAIL_RTRS_SG_CNT;
	if (len < rail_rtrs_info_rsp_size(cnt))
		return RAIL_RTRS_SHORT;
	for (n = 0; n < cnt; n++) {
		rail_rtrs_info_rsp_get(buf, n, &mem);
		if (!mem.len || mem.len % params->chunk_size)
			return RAIL_RTRS_SG_LEN;
		if (rail_addr_wraps(mem.addr, mem.len))
			return RAIL_RTRS_SG_ADDR;
		total += mem.len;
	}
	if (total != (__u64)params->queue_depth * params->chunk_size)
		return RAIL_RTRS_SG_TOTAL;
	*sg_cnt = cnt;
	return RAIL_RTRS_OK;
}

/**
 * rail_rtrs_info_rsp_get() - read a descriptor of an INFO_RSP
 * @buf: message, not refused
 * @nr: which
 * @mem: filled in
 */
void rail_rtrs_info_rsp_get(const void *buf, __u32 nr, struct rail_rtrs_mem *mem)
{
	struct rail_rtrs_sg sg;

	rail_wire_fetch(&sg, (const __u8 *)buf + rail_rtrs_info_rsp_size(nr), sizeof(sg));
	get_mem(mem, &sg);
}

/**
 * rail_rtrs_info_rsp_encode() - write the head of an INFO_RSP
 * @buf: rail_rtrs_info_rsp_size() bytes
 * @sg_cnt: descriptors that follow
 */
void rail_rtrs_info_rsp_encode(void *buf, __u16 sg_cnt)
{
	struct rail_rtrs_info_rsp msg = {
		.type = __cpu_to_le16(RAIL_RTRS_INFO_RSP),
		.sg_cnt = __cpu_to_le16(sg_cnt),
	};

	memcpy(buf, &msg, sizeof(msg));
}

/**
 * rail_rtrs_info_rsp_put() - write a descriptor of an INFO_RSP
 * @buf: message
 * @nr: which
 * @mem: what it describes
 */
void rail_rtrs_info_rsp_put(void *buf, __u32 nr, const struct rail_rtrs_mem *mem)
{
	struct rail_rtrs_sg sg;

	put_mem(&sg, mem);
	memcpy((__u8 *)buf + rail_rtrs_info_rsp_size(nr), &sg, sizeof(sg));
}

static bool imm_is_hb(__u32 type)
{
	return type == RAIL_RTRS_IMM_HB || type == RAIL_RTRS_IMM_HB_ACK;
}

/**
 * rail_rtrs_imm_server() - take apart an immediate value that a server received
 * @imm: in host order
 * @params: of the path
 * @out: filled in
 */
enum rail_rtrs_reason rail_rtrs_imm_server(__u32 imm, const struct rail_rtrs_params *params,
					   struct rail_rtrs_imm *out)
{
	__u32 payload = imm & RAIL_RTRS_IMM_PAYLOAD_MASK;

	memset(out, 0, sizeof(*out));
	out->type = imm >> RAIL_RTRS_IMM_PAYLOAD_BITS;
	if (imm_is_hb(out->type))
		return RAIL_RTRS_OK;
	if (out->type != RAIL_RTRS_IMM_IO_REQ)
		return RAIL_RTRS_IMM_TYPE;
	out->buf_id = payload >> params->mem_bits;
	out->off = payload & ((1U << params->mem_bits) - 1);
	if (out->buf_id >= params->queue_depth)
		return RAIL_RTRS_IMM_BUF;
	if (out->off > params->chunk_size - sizeof(struct rail_rtrs_write))
		return RAIL_RTRS_IMM_OFF;
	return RAIL_RTRS_OK;
}

/**
 * rail_rtrs_imm_client() - take apart an immediate value that a client received
 * @imm: in host order
 * @params: of the path
 * @out: filled in
 */
enum rail_rtrs_reason rail_rtrs_imm_client(__u32 imm, const struct rail_rtrs_params *params,
					   struct rail_rtrs_imm *out)
{
	__u32 payload = imm & RAIL_RTRS_IMM_PAYLOAD_MASK;

	memset(out, 0, sizeof(*out));
	out->type = imm >> RAIL_RTRS_IMM_PAYLOAD_BITS;
	if (imm_is_hb(out->type))
		return RAIL_RTRS_OK;
	if (out->type != RAIL_RTRS_IMM_IO_RSP && out->type != RAIL_RTRS_IMM_IO_RSP_INVAL)
		return RAIL_RTRS_IMM_TYPE;
	out->buf_id = payload & RAIL_RTRS_IMM_BUF_MASK;
	out->error = -(int)(payload >> RAIL_RTRS_IMM_BUF_BITS);
	if (out->buf_id >= params->queue_depth)
		return RAIL_RTRS_IMM_BUF;
	return RAIL_RTRS_OK;
}

/**
 * rail_rtrs_imm_rsp() - immediate value of an answer
 * @buf_id: chunk of the request
 * @error: 0 or a negative errno; one that has no room on the wire becomes EIO
 * @inval: a Send With Invalidate came just before
 */
__u32 rail_rtrs_imm_rsp(__u32 buf_id, int error, bool inval)
{
	__u32 type = inval ? RAIL_RTRS_IMM_IO_RSP_INVAL : RAIL_RTRS_IMM_IO_RSP;
	__u32 err = error < 0 ? -(__u32)error : (__u32)error;

	if (err > RAIL_RTRS_IMM_ERR_MAX)
		err = EIO;
	return type << RAIL_RTRS_IMM_PAYLOAD_BITS | err << RAIL_RTRS_IMM_BUF_BITS |
	       (buf_id & RAIL_RTRS_IMM_BUF_MASK);
}

static enum rail_rtrs_reason decode_read(const __u8 *p, __u32 room, __u32 *hdr_len,
					 struct rail_rtrs_req *req)
{
	__le16 words[2];	/* flags and sg_cnt */
	struct rail_rtrs_sg sg;
	__u16 flags, sg_cnt;

	*hdr_len = sizeof(struct rail_rtrs_read);
	if (room < *hdr_len)
		return RAIL_RTRS_HDR_PAST;
	rail_wire_fetch(words, p + offsetof(struct rail_rtrs_read, flags), sizeof(words));
	flags = __le16_to_cpu(words[0]);
	sg_cnt = __le16_to_cpu(words[1]);
	if (flags & ~RAIL_RTRS_READ_F_INVAL)
		return RAIL_RTRS_FLAGS;
	if (sg_cnt > 1 || (!sg_cnt && req->data_len))
		return RAIL_RTRS_READ_SG;
	if (!sg_cnt)
		return RAIL_RTRS_OK;

	*hdr_len += sizeof(sg);
	if (room < *hdr_len)
		return RAIL_RTRS_HDR_PAST;
	rail_wire_fetch(&sg, p + sizeof(struct rail_rtrs_read), sizeof(sg));
	get_mem(&req->mem, &sg);
	if (req->data_len > req->mem.len)
		return RAIL_RTRS_READ_LEN;
	if (rail_addr_wraps(req->mem.addr, req->mem.len))
		return RAIL_RTRS_READ_ADDR;
	req->has_mem = true;
	req->inval = flags & RAIL_RTRS_READ_F_INVAL;
	return RAIL_RTRS_OK;
}

/**
 * rail_rtrs_req_decode() - check an I/O request in its chunk
 * @chunk: the chunk, of @params->chunk_size bytes
 * @params: of the path
 * @off: from the immediate value
 * @written: bytes that the RDMA Write brought, if the completion says so; 0 if not
 * @req: filled in
 *
 * Without rkey rotation the client can still write to the chunk: what is in @req was read once
 * and stays as it was checked. The user header is not looked at; copy it before it is.
 */
enum rail_rtrs_reason rail_rtrs_req_decode(const void *chunk,
					   const struct rail_rtrs_params *params, __u32 off,
					   __u32 written, struct rail_rtrs_req *req)
{
	const __u8 *p = (const __u8 *)chunk + off;
	enum rail_rtrs_reason reason;
	struct rail_rtrs_write head;
	__u32 hdr_len = sizeof(head);
	__u64 due;

	memset(req, 0, sizeof(*req));
	if (off > params->chunk_size - sizeof(head))
		return RAIL_RTRS_HDR_PAST;
	rail_wire_fetch(&head, p, sizeof(head));
	req->type = __le16_to_cpu(head.type);
	req->usr_len = __le16_to_cpu(head.usr_len);
	if (req->type != RAIL_RTRS_WRITE && req->type != RAIL_RTRS_READ)
		return RAIL_RTRS_BAD_TYPE;
	if (req->usr_len > off)
		return RAIL_RTRS_USR_LEN;
	req->usr_at = off - req->usr_len;
	req->data_len = req->usr_at;
	if (req->data_len > params->max_io_size)
		return RAIL_RTRS_DATA_LONG;
	if (req->type == RAIL_RTRS_READ) {
		reason = decode_read(p, params->chunk_size - off, &hdr_len, req);
		if (reason)
			return reason;
	}
	due = (__u64)req->usr_len + hdr_len;
	if (due > params->max_hdr_size)
		return RAIL_RTRS_USR_LONG;
	/* A write brings the data with it, a read only what is behind its place. */
	if (req->type == RAIL_RTRS_WRITE)
		due += req->data_len;
	if (written && written != due)
		return RAIL_RTRS_WRITTEN;
	return RAIL_RTRS_OK;
}

/**
 * rail_rtrs_write_encode() - write the header of a write request
 * @msg: where to, behind the user header
 * @usr_len: bytes of that
 */
void rail_rtrs_write_encode(struct rail_rtrs_write *msg, __u16 usr_len)
{
	msg->type = __cpu_to_le16(RAIL_RTRS_WRITE);
	msg->usr_len = __cpu_to_le16(usr_len);
}

/**
 * rail_rtrs_read_encode() - write the header of a read request
 * @buf: where to, behind the user header; RAIL_RTRS_REQ_HDR_MAX bytes
 * @usr_len: bytes of that
 * @mem: where the data goes; NULL when none comes back
 * @inval: the server is to invalidate the key
 *
 * Return: bytes written.
 */
__u32 rail_rtrs_read_encode(void *buf, __u16 usr_len, const struct rail_rtrs_mem *mem, bool inval)
{
	struct rail_rtrs_read msg = {
		.type = __cpu_to_le16(RAIL_RTRS_READ),
		.usr_len = __cpu_to_le16(usr_len),
		.flags = __cpu_to_le16(mem && inval ? RAIL_RTRS_READ_F_INVAL : 0),
		.sg_cnt = __cpu_to_le16(mem ? 1 : 0),
	};
	struct rail_rtrs_sg sg;

	memcpy(buf, &msg, sizeof(msg));
	if (!mem)
		return sizeof(msg);
	put_mem(&sg, mem);
	memcpy((__u8 *)buf + sizeof(msg), &sg, sizeof(sg));
	return sizeof(msg) + sizeof(sg);
}

/**
 * rail_rtrs_small_encode() - write a request that is a message
 * @buf: RAIL_RTRS_SMALL_HDR bytes
 * @req: the request
 *
 * Return: where the user header goes, of @req->usr_len bytes.
 */
void *rail_rtrs_small_encode(void *buf, const struct rail_rtrs_small_req *req)
{
	struct rail_rtrs_small msg = {
		.type = __cpu_to_le16(req->type),
		.usr_len = __cpu_to_le16(req->usr_len),
		.buf_id = __cpu_to_le16(req->buf_id),
		.flags = req->alone ? RAIL_RTRS_SMALL_F_ALONE : 0,
		.data_len = __cpu_to_le32(req->data_len),
	};
	__u8 *usr = (__u8 *)buf + sizeof(msg);

	if (req->type == RAIL_RTRS_SMALL_READ && req->data_len) {
		msg.sg.addr = __cpu_to_le64(req->addr);
		msg.sg.key = __cpu_to_le32(req->key);
		msg.sg.len = msg.data_len;
	}
	memcpy(buf, &msg, sizeof(msg));
	memset(usr, 0, RAIL_RTRS_SMALL_USR);
	return usr;
}

/**
 * rail_rtrs_small_decode() - check a request that is a message
 * @buf: its first RAIL_RTRS_SMALL_HDR bytes, or fewer where @len is less
 * @len: bytes of the message, data included
 * @params: of the path
 * @buf_id: chunk
 * @req: filled in; of type READ or WRITE; the user header is in @buf at @req->usr_at
 */
enum rail_rtrs_reason rail_rtrs_small_decode(const void *buf, __u32 len,
					     const struct rail_rtrs_params *params, __u32 *buf_id,
					     struct rail_rtrs_req *req)
{
	static const __u8 zeroes[4];
	struct rail_rtrs_small msg;
	__u32 due = RAIL_RTRS_SMALL_HDR;
	__u16 type;

	*buf_id = 0;
	memset(req, 0, sizeof(*req));
	if (len < RAIL_RTRS_SMALL_HDR)
		return RAIL_RTRS_SHORT;
	rail_wire_fetch(&msg, buf, sizeof(msg));
	type = __le16_to_cpu(msg.type);
	if (type != RAIL_RTRS_SMALL_WRITE && type != RAIL_RTRS_SMALL_READ)
		return RAIL_RTRS_BAD_TYPE;
	if (msg.flags & ~RAIL_RTRS_SMALL_F_ALONE || msg.reserved ||
	    memcmp(msg.reserved2, zeroes, sizeof(msg.reserved2)))
		return RAIL_RTRS_FLAGS;
	req->alone = msg.flags & RAIL_RTRS_SMALL_F_ALONE;
	req->usr_at = sizeof(msg);
	req->usr_len = __le16_to_cpu(msg.usr_len);
	if (req->usr_len > RAIL_RTRS_SMALL_USR)
		return RAIL_RTRS_USR_LONG;
	if (__le16_to_cpu(msg.buf_id) >= params->queue_depth)
		return RAIL_RTRS_IMM_BUF;
	req->data_len = __le32_to_cpu(msg.data_len);
	if (req->data_len > RAIL_RTRS_SMALL_DATA || req->data_len > params->max_io_size)
		return RAIL_RTRS_DATA_LONG;
	if (type == RAIL_RTRS_SMALL_WRITE) {
		req->type = RAIL_RTRS_WRITE;
		due += req->data_len;
	} else {
		req->type = RAIL_RTRS_READ;
		get_mem(&req->mem, &msg.sg);
		req->has_mem = req->data_len;
		if (req->has_mem && req->data_len > req->mem.len)
			return RAIL_RTRS_READ_LEN;
		if (req->has_mem && rail_addr_wraps(req->mem.addr, req->mem.len))
			return RAIL_RTRS_READ_ADDR;
	}
	if (len != due)
		return RAIL_RTRS_WRITTEN;
	*buf_id = __le16_to_cpu(msg.buf_id);
	return RAIL_RTRS_OK;
}

/**
 * rail_rtrs_small_rsps_put() - write one more answer to a message
 * @msg: the message
 * @count: how many it has; less than RAIL_RTRS_SMALL_RSPS_MAX
 * @rsp: from rail_rtrs_imm_rsp()
 *
 * Return: bytes of the message now.
 */
__u32 rail_rtrs_small_rsps_put(struct rail_rtrs_small_rsps *msg, __u32 count, __u32 rsp)
{
	msg->type = __cpu_to_le16(RAIL_RTRS_SMALL_RSPS);
	msg->count = __cpu_to_le16(count + 1);
	msg->rsp[count] = __cpu_to_le32(rsp);
	return offsetof(struct rail_rtrs_small_rsps, rsp) + (count + 1) * sizeof(msg->rsp[0]);
}

/**
 * rail_rtrs_small_rsps_decode() - check a message of answers
 * @buf: message
 * @len: its length
 * @rsp: the answers, for rail_rtrs_imm_client(); of type RAIL_RTRS_IMM_IO_RSP each
 * @count: how many
 */
enum rail_rtrs_reason rail_rtrs_small_rsps_decode(const void *buf, __u32 len,
						  __u32 rsp[RAIL_RTRS_SMALL_RSPS_MAX],
						  __u32 *count)
{
	const __u32 head = offsetof(struct rail_rtrs_small_rsps, rsp);
	struct rail_rtrs_small_rsps msg;
	__u32 i, n;

	*count = 0;
	if (len < head)
		return RAIL_RTRS_SHORT;
	if (len > sizeof(msg))
		return RAIL_RTRS_RSPS_COUNT;
	rail_wire_fetch(&msg, buf, len);
	if (__le16_to_cpu(msg.type) != RAIL_RTRS_SMALL_RSPS)
		return RAIL_RTRS_BAD_TYPE;
	n = __le16_to_cpu(msg.count);
	if (!n || n > RAIL_RTRS_SMALL_RSPS_MAX || len != head + n * sizeof(msg.rsp[0]))
		return RAIL_RTRS_RSPS_COUNT;
	for (i = 0; i < n; i++) {
		rsp[i] = __le32_to_cpu(msg.rsp[i]);
		if (rsp[i] >> RAIL_RTRS_IMM_PAYLOAD_BITS != RAIL_RTRS_IMM_IO_RSP)
			return RAIL_RTRS_IMM_TYPE;
	}
	*count = n;
	return RAIL_RTRS_OK;
}

/**
 * rail_rtrs_rkey_rsp_decode() - check the message that an answer with a new rkey is
 * @buf: message
 * @len: its length
 * @buf_id: from the immediate value that came with it
 * @rkey: the chunk's next key
 */
enum rail_rtrs_reason rail_rtrs_rkey_rsp_decode(const void *buf, __u32 len, __u32 buf_id,
						__u32 *rkey)
{
	struct rail_rtrs_rkey_rsp msg;

	*rkey = 0;
	if (len < sizeof(msg))
		return RAIL_RTRS_SHORT;
	rail_wire_fetch(&msg, buf, sizeof(msg));
	if (__le16_to_cpu(msg.type) != RAIL_RTRS_RKEY_RSP)
		return RAIL_RTRS_BAD_TYPE;
	if (__le16_to_cpu(msg.buf_id) != buf_id)
		return RAIL_RTRS_RKEY_BUF;
	*rkey = __le32_to_cpu(msg.rkey);
	return RAIL_RTRS_OK;
}

/**
 * rail_rtrs_rkey_rsp_encode() - write the message that an answer with a new rkey is
 * @msg: where to
 * @buf_id: chunk
 * @rkey: its next key
 */
void rail_rtrs_rkey_rsp_encode(struct rail_rtrs_rkey_rsp *msg, __u16 buf_id, __u32 rkey)
{
	msg->type = __cpu_to_le16(RAIL_RTRS_RKEY_RSP);
	msg->buf_id = __cpu_to_le16(buf_id);
	msg->rkey = __cpu_to_le32(rkey);
}
