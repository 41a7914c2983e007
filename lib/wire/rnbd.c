// SPDX-License-Identifier: GPL-2.0-only
/*
 * Codec of RNBD protocol version 2. See the header for how it is meant to be used.
 */
#include <rail/wire/rnbd.h>

static const char * const reason_text[RAIL_RNBD_NR_REASONS] = {
	[RAIL_RNBD_OK] = "no error",
	[RAIL_RNBD_SHORT] = "shorter than such a message is",
	[RAIL_RNBD_BAD_TYPE] = "not a type of message that is due here",
	[RAIL_RNBD_BAD_WAY] = "read that has to be a write, or the other way round",
	[RAIL_RNBD_BAD_VERSION] = "unknown version of the protocol",
	[RAIL_RNBD_ANSWER_SPACE] = "no room for the answer",
	[RAIL_RNBD_ACCESS] = "unknown access mode",
	[RAIL_RNBD_NAME_END] = "device name has no end",
	[RAIL_RNBD_NAME_EMPTY] = "device name is empty",
	[RAIL_RNBD_NAME_CHAR] = "device name with a control character",
	[RAIL_RNBD_BLOCK_SIZE] = "logical block size is no power of two from 512 on",
	[RAIL_RNBD_CAPACITY] = "device is larger than any can be",
	[RAIL_RNBD_LIMITS] = "device that takes not one block at a time",
	[RAIL_RNBD_OP] = "unknown operation",
	[RAIL_RNBD_FLAGS] = "unknown flags",
	[RAIL_RNBD_IO_WAY] = "operation came as a read that has to be a write, or the reverse",
	[RAIL_RNBD_IO_DATA] = "size differs from that of the data that travels with it",
	[RAIL_RNBD_IO_SIZE] = "size is not what the operation needs",
	[RAIL_RNBD_IO_RANGE] = "runs past the end of the device",
};

/**
 * rail_rnbd_reason_text() - the reason in words, for a log line
 * @reason: what a function here returned
 */
const char *rail_rnbd_reason_text(enum rail_rnbd_reason reason)
{
	if ((unsigned int)reason >= RAIL_RNBD_NR_REASONS)
		return "unknown reason";
	return reason_text[reason];
}

static void put_head(struct rail_rnbd_head *head, enum rail_rnbd_type type)
{
	head->type = __cpu_to_le16(type);
	head->padding = 0;
}

static bool head_is(const struct rail_rnbd_head *head, enum rail_rnbd_type type)
{
	return __le16_to_cpu(head->type) == type;
}

/**
 * rail_rnbd_type_decode() - which message a client sends
 * @buf: user header
 * @len: its length
 * @is_read: it came with an RTRS read
 * @type: filled in
 */
enum rail_rnbd_reason rail_rnbd_type_decode(const void *buf, __u32 len, bool is_read,
					    enum rail_rnbd_type *type)
{
	struct rail_rnbd_head head;

	*type = RAIL_RNBD_SESS_INFO;
	if (len < sizeof(head))
		return RAIL_RNBD_SHORT;
	rail_wire_fetch(&head, buf, sizeof(head));
	switch (__le16_to_cpu(head.type)) {
	case RAIL_RNBD_SESS_INFO:
		*type = RAIL_RNBD_SESS_INFO;
		return is_read ? RAIL_RNBD_OK : RAIL_RNBD_BAD_WAY;
	case RAIL_RNBD_OPEN:
		*type = RAIL_RNBD_OPEN;
		return is_read ? RAIL_RNBD_OK : RAIL_RNBD_BAD_WAY;
	case RAIL_RNBD_IO:
		*type = RAIL_RNBD_IO;
		return RAIL_RNBD_OK;
	case RAIL_RNBD_CLOSE:
		*type = RAIL_RNBD_CLOSE;
		return is_read ? RAIL_RNBD_BAD_WAY : RAIL_RNBD_OK;
	default:
		return RAIL_RNBD_BAD_TYPE;
	}
}

/**
 * rail_rnbd_sess_info_decode() - check a SESS_INFO
 * @buf: user header
 * @len: its length
 * @room: bytes the client has for the answer
 * @ver: the lower of both versions, which is what the answer says
 */
enum rail_rnbd_reason rail_rnbd_sess_info_decode(const void *buf, __u32 len, __u32 room,
						 __u8 *ver)
{
	struct rail_rnbd_sess_info msg;

	*ver = 0;
	if (len < sizeof(msg))
		return RAIL_RNBD_SHORT;
	rail_wire_fetch(&msg, buf, sizeof(msg));
	if (!head_is(&msg.head, RAIL_RNBD_SESS_INFO))
		return RAIL_RNBD_BAD_TYPE;
	if (!msg.ver)
		return RAIL_RNBD_BAD_VERSION;
	if (room < sizeof(msg))
		return RAIL_RNBD_ANSWER_SPACE;
	*ver = msg.ver < RAIL_RNBD_VERSION ? msg.ver : RAIL_RNBD_VERSION;
	return RAIL_RNBD_OK;
}

/**
 * rail_rnbd_sess_info_rsp_decode() - check the answer to a SESS_INFO
 * @buf: data of the read
 * @len: bytes there
 * @ver: the version to speak
 */
enum rail_rnbd_reason rail_rnbd_sess_info_rsp_decode(const void *buf, __u32 len, __u8 *ver)
{
	struct rail_rnbd_sess_info msg;

	*ver = 0;
	if (len < sizeof(msg))
		return RAIL_RNBD_SHORT;
	rail_wire_fetch(&msg, buf, sizeof(msg));
	if (!head_is(&msg.head, RAIL_RNBD_SESS_INFO_RSP))
		return RAIL_RNBD_BAD_TYPE;
	if (!msg.ver || msg.ver > RAIL_RNBD_VERSION)
		return RAIL_RNBD_BAD_VERSION;
	*ver = msg.ver;
	return RAIL_RNBD_OK;
}

/**
 * rail_rnbd_sess_info_encode() - write a SESS_INFO or its answer
 * @msg: where to
 * @rsp: it is the answer
 * @ver: version
 */
void rail_rnbd_sess_info_encode(struct rail_rnbd_sess_info *msg, bool rsp, __u8 ver)
{
	memset(msg, 0, sizeof(*msg));
	put_head(&msg->head, rsp ? RAIL_RNBD_SESS_INFO_RSP : RAIL_RNBD_SESS_INFO);
	msg->ver = ver;
}

/**
 * rail_rnbd_ext_encode() - add to a SESS_INFO or its answer what RAIL alone understands
 * @msg: encoded
 * @flags: RAIL_RNBD_EXT_* bits
 * @count: sizes that follow
 */
void rail_rnbd_ext_encode(struct rail_rnbd_sess_info *msg, __u16 flags, __u16 count)
{
	struct rail_rnbd_ext ext = {
		.magic = __cpu_to_le32(RAIL_RNBD_EXT_MAGIC),
		.flags = __cpu_to_le16(flags),
		.count = __cpu_to_le16(count),
	};

	memcpy((__u8 *)msg + RAIL_RNBD_EXT_AT, &ext, sizeof(ext));
}

/**
 * rail_rnbd_ext_decode() - is the sender of a SESS_INFO, or of its answer, RAIL?
 * @buf: message
 * @len: bytes there
 * @flags: RAIL_RNBD_EXT_* bits; 0 if not
 * @count: sizes that follow; 0 if not. Not checked: see rail_rnbd_size_decode()
 */
bool rail_rnbd_ext_decode(const void *buf, __u32 len, __u16 *flags, __u16 *count)
{
	struct rail_rnbd_ext ext;

	*flags = 0;
	*count = 0;
	if (len < sizeof(struct rail_rnbd_sess_info))
		return false;
	rail_wire_fetch(&ext, (const __u8 *)buf + RAIL_RNBD_EXT_AT, sizeof(ext));
	if (__le32_to_cpu(ext.magic) != RAIL_RNBD_EXT_MAGIC)
		return false;
	*flags = __le16_to_cpu(ext.flags);
	*count = __le16_to_cpu(ext.count);
	return true;
}

/**
 * rail_rnbd_size_encode() - write the size of a device
 * @msg: where to
 * @device_id: which device
 * @nsectors: units of 512 bytes
 */
void rail_rnbd_size_encode(struct rail_rnbd_size *msg, __u32 device_id, __u64 nsectors)
{
	msg->device_id = __cpu_to_le32(device_id);
	msg->reserved = 0;
	msg->nsectors = __cpu_to_le64(nsectors);
}

/**
 * rail_rnbd_size_decode() - a size after the answer to SESS_INFO
 * @buf: data of the read
 * @len: bytes there
 * @index: which one
 * @device_id: which device
 * @nsectors: units of 512 bytes
 */
enum rail_rnbd_reason rail_rnbd_size_decode(const void *buf, __u32 len, __u16 index,
					    __u32 *device_id, __u64 *nsectors)
{
	__u32 at = sizeof(struct rail_rnbd_sess_info) + index * sizeof(struct rail_rnbd_size);
	struct rail_rnbd_size msg;

	*device_id = 0;
	*nsectors = 0;
	if (len < at + sizeof(msg))
		return RAIL_RNBD_SHORT;
	rail_wire_fetch(&msg, (const __u8 *)buf + at, sizeof(msg));
	*device_id = __le32_to_cpu(msg.device_id);
	*nsectors = __le64_to_cpu(msg.nsectors);
	return *nsectors < RAIL_RNBD_MAX_SECTORS ? RAIL_RNBD_OK : RAIL_RNBD_CAPACITY;
}

/**
 * rail_rnbd_name_check() - may a device have this name?
 * @name: name
 * @size: bytes of the array it is in
 *
 * It is looked up below a directory and printed in the log; where it leads is another question,
 * see rail_rnbd_name_climbs().
 */
enum rail_rnbd_reason rail_rnbd_name_check(const char *name, size_t size)
{
	size_t n;

	for (n = 0; n < size && name[n]; n++) {
		unsigned char c = name[n];

		if (c < ' ' || c == 0x7f)
			return RAIL_RNBD_NAME_CHAR;
	}
	if (n == size)
		return RAIL_RNBD_NAME_END;
	return n ? RAIL_RNBD_OK : RAIL_RNBD_NAME_EMPTY;
}

/**
 * rail_rnbd_name_climbs() - is one of the name's parts ".."?
 * @name: NUL-terminated
 */
bool rail_rnbd_name_climbs(const char *name)
{
	const char *p = name;

	while (*p) {
		if (p[0] == '.' && p[1] == '.' && (p[2] == '/' || !p[2]))
			return true;
		while (*p && *p != '/')
			p++;
		while (*p == '/')
			p++;
	}
	return false;
}

/**
 * rail_rnbd_open_decode() - check an OPEN
 * @buf: user header
 * @len: its length
 * @room: bytes the client has for the answer
 * @opening: filled in
 */
enum rail_rnbd_reason rail_rnbd_open_decode(const void *buf, __u32 len, __u32 room,
					    struct rail_rnbd_opening *opening)
{
	struct rail_rnbd_open msg;

	opening->access = RAIL_RNBD_ACCESS_RO;
	opening->dev_name[0] = '\0';
	if (len < sizeof(msg))
		return RAIL_RNBD_SHORT;
	rail_wire_fetch(&msg, buf, sizeof(msg));
	if (!head_is(&msg.head, RAIL_RNBD_OPEN))
		return RAIL_RNBD_BAD_TYPE;
	if (msg.access_mode > RAIL_RNBD_ACCESS_MIGRATION)
		return RAIL_RNBD_ACCESS;
	if (room < sizeof(struct rail_rnbd_open_rsp))
		return RAIL_RNBD_ANSWER_SPACE;
	opening->access = msg.access_mode;
	memcpy(opening->dev_name, msg.dev_name, sizeof(msg.dev_name));
	return rail_rnbd_name_check(opening->dev_name, sizeof(msg.dev_name));
}

/**
 * rail_rnbd_open_encode() - write an OPEN
 * @msg: where to
 * @access: how the device will be used
 * @dev_name: its name at the server
 */
enum rail_rnbd_reason rail_rnbd_open_encode(struct rail_rnbd_open *msg,
					    enum rail_rnbd_access access, const char *dev_name)
{
	enum rail_rnbd_reason reason;

	memset(msg, 0, sizeof(*msg));
	reason = rail_rnbd_name_check(dev_name, sizeof(msg->dev_name));
	if (reason)
		return reason;
	put_head(&msg->head, RAIL_RNBD_OPEN);
	msg->access_mode = access;
	memcpy(msg->dev_name, dev_name, strlen(dev_name));
	return RAIL_RNBD_OK;
}

static bool is_block_size(__u32 size)
{
	return size >= RAIL_RNBD_SECTOR && !(size & (size - 1));
}

/**
 * rail_rnbd_open_rsp_decode() - check the answer to an OPEN
 * @buf: data of the read
 * @len: bytes there
 * @dev: filled in
 *
 * A physical block size that makes no sense is only a hint gone wrong (64 KiB does not fit into
 * its 16 bits): the logical one takes its place.
 */
enum rail_rnbd_reason rail_rnbd_open_rsp_decode(const void *buf, __u32 len,
						struct rail_rnbd_device *dev)
{
	struct rail_rnbd_open_rsp msg;

	memset(dev, 0, sizeof(*dev));
	if (len < sizeof(msg))
		return RAIL_RNBD_SHORT;
	rail_wire_fetch(&msg, buf, sizeof(msg));
	if (!head_is(&msg.head, RAIL_RNBD_OPEN_RSP))
		return RAIL_RNBD_BAD_TYPE;
	dev->device_id = __le32_to_cpu(msg.device_id);
	dev->nsectors = __le64_to_cpu(msg.nsectors);
	dev->max_hw_sectors = __le32_to_cpu(msg.max_hw_sectors);
	dev->max_write_zeroes_sectors = __le32_to_cpu(msg.zeroes_sectors);
	dev->max_discard_sectors = __le32_to_cpu(msg.max_discard_sectors);
	dev->discard_granularity = __le32_to_cpu(msg.discard_granularity);
	dev->discard_alignment = __le32_to_cpu(msg.discard_align);
	dev->physical_block_size = __le16_to_cpu(msg.phys_block_size);
	dev->logical_block_size = __le16_to_cpu(msg.logical_block_size);
	dev->max_segments = __le16_to_cpu(msg.max_segments);
	dev->secure_discard = __le16_to_cpu(msg.secure_erase);
	dev->cache_policy = msg.cache_policy;

	if (!is_block_size(dev->logical_block_size))
		return RAIL_RNBD_BLOCK_SIZE;
	if (!is_block_size(dev->physical_block_size) ||
	    dev->physical_block_size < dev->logical_block_size)
		dev->physical_block_size = dev->logical_block_size;
	if (dev->nsectors >= RAIL_RNBD_MAX_SECTORS)
		return RAIL_RNBD_CAPACITY;
	if (!dev->max_segments ||
	    dev->max_hw_sectors < dev->logical_block_size / RAIL_RNBD_SECTOR)
		return RAIL_RNBD_LIMITS;
	return RAIL_RNBD_OK;
}

/**
 * rail_rnbd_open_rsp_encode() - write the answer to an OPEN
 * @msg: where to
 * @dev: what to say of the device
 */
void rail_rnbd_open_rsp_encode(struct rail_rnbd_open_rsp *msg, const struct rail_rnbd_device *dev)
{
	memset(msg, 0, sizeof(*msg));
	put_head(&msg->head, RAIL_RNBD_OPEN_RSP);
	msg->device_id = __cpu_to_le32(dev->device_id);
	msg->nsectors = __cpu_to_le64(dev->nsectors);
	msg->max_hw_sectors = __cpu_to_le32(dev->max_hw_sectors);
	msg->zeroes_sectors = __cpu_to_le32(dev->max_write_zeroes_sectors);
	msg->max_discard_sectors = __cpu_to_le32(dev->max_discard_sectors);
	msg->discard_granularity = __cpu_to_le32(dev->discard_granularity);
	msg->discard_align = __cpu_to_le32(dev->discard_alignment);
	msg->phys_block_size = __cpu_to_le16(dev->physical_block_size);
	msg->logical_block_size = __cpu_to_le16(dev->logical_block_size);
	msg->max_segments = __cpu_to_le16(dev->max_segments);
	msg->secure_erase = __cpu_to_le16(dev->secure_discard);
	msg->cache_policy = dev->cache_policy;
}

/**
 * rail_rnbd_io_decode() - check an IO
 * @buf: user header
 * @len: its length
 * @is_read: it came with an RTRS read
 * @data_len: bytes of data that travel with it, one way or the other
 * @req: filled in
 */
enum rail_rnbd_reason rail_rnbd_io_decode(const void *buf, __u32 len, bool is_read, __u32 data_len,
					  struct rail_rnbd_req *req)
{
	struct rail_rnbd_io msg;
	enum rail_rnbd_op op;
	__u32 rw;

	memset(req, 0, sizeof(*req));
	if (len < sizeof(msg))
		return RAIL_RNBD_SHORT;
	rail_wire_fetch(&msg, buf, sizeof(msg));
	if (!head_is(&msg.head, RAIL_RNBD_IO))
		return RAIL_RNBD_BAD_TYPE;
	rw = __le32_to_cpu(msg.rw);
	if ((rw & RAIL_RNBD_OP_MASK) > RAIL_RNBD_OP_WRITE_ZEROES)
		return RAIL_RNBD_OP;
	if (rw & ~(RAIL_RNBD_OP_MASK | RAIL_RNBD_F_ALL))
		return RAIL_RNBD_FLAGS;
	op = (enum rail_rnbd_op)(rw & RAIL_RNBD_OP_MASK);
	req->device_id = __le32_to_cpu(msg.device_id);
	req->sector = __le64_to_cpu(msg.sector);
	req->op = op;
	req->flags = rw & RAIL_RNBD_F_ALL;
	req->size = __le32_to_cpu(msg.bi_size);
	req->prio = __le16_to_cpu(msg.prio);

	if (rail_rnbd_op_is_read(op) != is_read)
		return RAIL_RNBD_IO_WAY;
	if (data_len != (rail_rnbd_op_has_data(op) ? req->size : 0))
		return RAIL_RNBD_IO_DATA;
	if (op == RAIL_RNBD_OP_FLUSH)
		return req->size ? RAIL_RNBD_IO_SIZE : RAIL_RNBD_OK;
	if (!req->size || req->size % RAIL_RNBD_SECTOR)
		return RAIL_RNBD_IO_SIZE;
	return RAIL_RNBD_OK;
}

/**
 * rail_rnbd_io_in_range() - does an I/O stay on the device?
 * @req: decoded I/O
 * @nsectors: size of the device in units of 512 bytes
 */
enum rail_rnbd_reason rail_rnbd_io_in_range(const struct rail_rnbd_req *req, __u64 nsectors)
{
	/* A flush has no place; its sector may hold anything. */
	if (req->op == RAIL_RNBD_OP_FLUSH)
		return RAIL_RNBD_OK;
	if (req->sector > nsectors || req->size / RAIL_RNBD_SECTOR > nsectors - req->sector)
		return RAIL_RNBD_IO_RANGE;
	return RAIL_RNBD_OK;
}

/**
 * rail_rnbd_io_encode() - write an IO
 * @msg: where to
 * @req: what to ask for
 */
void rail_rnbd_io_encode(struct rail_rnbd_io *msg, const struct rail_rnbd_req *req)
{
	memset(msg, 0, sizeof(*msg));
	put_head(&msg->head, RAIL_RNBD_IO);
	msg->device_id = __cpu_to_le32(req->device_id);
	msg->sector = __cpu_to_le64(req->sector);
	msg->rw = __cpu_to_le32(req->op | req->flags);
	msg->bi_size = __cpu_to_le32(req->size);
	msg->prio = __cpu_to_le16(req->prio);
}

/**
 * rail_rnbd_close_decode() - check a CLOSE
 * @buf: user header
 * @len: its length
 * @device_id: which device
 */
enum rail_rnbd_reason rail_rnbd_close_decode(const void *buf, __u32 len, __u32 *device_id)
{
	struct rail_rnbd_close msg;

	*device_id = 0;
	if (len < sizeof(msg))
		return RAIL_RNBD_SHORT;
	rail_wire_fetch(&msg, buf, sizeof(msg));
	if (!head_is(&msg.head, RAIL_RNBD_CLOSE))
		return RAIL_RNBD_BAD_TYPE;
	*device_id = __le32_to_cpu(msg.device_id);
	return RAIL_RNBD_OK;
}

/**
 * rail_rnbd_close_encode() - write a CLOSE
 * @msg: where to
 * @device_id: which device
 */
void rail_rnbd_close_encode(struct rail_rnbd_close *msg, __u32 device_id)
{
	put_head(&msg->head, RAIL_RNBD_CLOSE);
	msg->device_id = __cpu_to_le32(device_id);
}
