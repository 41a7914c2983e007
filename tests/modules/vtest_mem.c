// SPDX-License-Identifier: GPL-2.0-only
/* Patterns that can be made and checked from any offset, and scattered memory with them. */
#include <linux/export.h>
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "rail_vtest.h"

/* So that no region begins at a page's beginning. */
#define RVT_MEM_OFFSET	40

/**
 * rvt_mix - a value that looks like chance
 * @value: of what
 *
 * Return: a number that depends on every bit of @value.
 */
u64 rvt_mix(u64 value)
{
	value += 0x9e3779b97f4a7c15ULL;
	value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
	value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
	return value ^ (value >> 31);
}
EXPORT_SYMBOL_GPL(rvt_mix);

/* A word of the pattern costs one multiplication; the seed went through rvt_mix(). */
static u64 rvt_pattern(u64 seed, u32 index)
{
	u64 word = (seed + index) * 0xd6e8feb86659fd93ULL;

	return word ^ (word >> 32);
}

static u8 rvt_byte(u64 seed, u32 offset)
{
	return rvt_pattern(seed, offset / 8) >> (offset % 8 * 8);
}

/**
 * rvt_fill - write pattern
 * @buf: where to
 * @len: how much
 * @seed: which pattern
 * @offset: where in the pattern to begin
 */
void rvt_fill(void *buf, u32 len, u64 seed, u32 offset)
{
	u8 *to = buf, *end = to + len;

	for (; to < end && offset % 8; offset++)
		*to++ = rvt_byte(seed, offset);
	for (; to + 8 <= end; to += 8, offset += 8) {
		__le64 word = cpu_to_le64(rvt_pattern(seed, offset / 8));

		memcpy(to, &word, 8);
	}
	for (; to < end; offset++)
		*to++ = rvt_byte(seed, offset);
}
EXPORT_SYMBOL_GPL(rvt_fill);

/**
 * rvt_matches - check pattern
 * @buf: where it should be
 * @len: how much
 * @seed: which pattern
 * @offset: where in the pattern to begin
 *
 * Return: true if every byte is right.
 */
bool rvt_matches(const void *buf, u32 len, u64 seed, u32 offset)
{
	const u8 *at = buf, *end = at + len;

	for (; at < end && offset % 8; offset++)
		if (*at++ != rvt_byte(seed, offset))
			return false;
	for (; at + 8 <= end; at += 8, offset += 8) {
		__le64 word;

		memcpy(&word, at, 8);
		if (le64_to_cpu(word) != rvt_pattern(seed, offset / 8))
			return false;
	}
	for (; at < end; offset++)
		if (*at++ != rvt_byte(seed, offset))
			return false;
	return true;
}
EXPORT_SYMBOL_GPL(rvt_matches);

/**
 * rvt_mem_alloc - allocate scattered pages
 * @mem: what to make; zeroed
 * @size: how many bytes it has to hold at the most
 *
 * Return: 0 or -ENOMEM; rvt_mem_free() may be called in either case.
 */
int rvt_mem_alloc(struct rvt_mem *mem, u32 size)
{
	u32 i, pages = DIV_ROUND_UP(size + RVT_MEM_OFFSET, PAGE_SIZE);

	mem->sg = kcalloc(pages, sizeof(*mem->sg), GFP_KERNEL);
	if (!mem->sg)
		return -ENOMEM;
	sg_init_table(mem->sg, pages);
	for (i = 0; i < pages; i++) {
		struct page *page = alloc_page(GFP_KERNEL);

		if (!page)
			return -ENOMEM;
		sg_set_page(&mem->sg[i], page, PAGE_SIZE, 0);
		mem->pages++;
	}
	rvt_mem_resize(mem, size);
	return 0;
}
EXPORT_SYMBOL_GPL(rvt_mem_alloc);

/**
 * rvt_mem_free - free it
 * @mem: what rvt_mem_alloc() made, or zeros
 */
void rvt_mem_free(struct rvt_mem *mem)
{
	u32 i;

	for (i = 0; i < mem->pages; i++)
		__free_page(sg_page(&mem->sg[i]));
	kfree(mem->sg);
	memset(mem, 0, sizeof(*mem));
}
EXPORT_SYMBOL_GPL(rvt_mem_free);

/**
 * rvt_mem_resize - use so much of it
 * @mem: the memory
 * @len: how much, at least 1, at the most what it was allocated for
 */
void rvt_mem_resize(struct rvt_mem *mem, u32 len)
{
	u32 i, left = len;

	for (i = 0; left; i++) {
		u32 at = i ? 0 : RVT_MEM_OFFSET;
		u32 part = min_t(u32, left, PAGE_SIZE - at);

		mem->sg[i].offset = at;
		mem->sg[i].length = part;
		sg_unmark_end(&mem->sg[i]);
		left -= part;
	}
	sg_mark_end(&mem->sg[i - 1]);
	mem->nents = i;
	mem->len = len;
}
EXPORT_SYMBOL_GPL(rvt_mem_resize);

/**
 * rvt_mem_fill - fill it with pattern
 * @mem: the memory
 * @seed: which pattern
 */
void rvt_mem_fill(struct rvt_mem *mem, u64 seed)
{
	u32 i, offset = 0;

	for (i = 0; i < mem->nents; i++) {
		rvt_fill(sg_virt(&mem->sg[i]), mem->sg[i].length, seed, offset);
		offset += mem->sg[i].length;
	}
}
EXPORT_SYMBOL_GPL(rvt_mem_fill);

/**
 * rvt_mem_matches_at - check a part of it for pattern
 * @mem: the memory
 * @at: where the pattern begins
 * @len: how much
 * @seed: which pattern
 *
 * Return: true if every byte is right.
 */
bool rvt_mem_matches_at(struct rvt_mem *mem, u32 at, u32 len, u64 seed)
{
	u32 i, part, offset = 0;

	for (i = 0; i < mem->nents && len; i++) {
		if (at >= mem->sg[i].length) {
			at -= mem->sg[i].length;
			continue;
		}
		part = min(len, mem->sg[i].length - at);
		if (!rvt_matches(sg_virt(&mem->sg[i]) + at, part, seed, offset))
			return false;
		offset += part;
		len -= part;
		at = 0;
	}
	return !len;
}
EXPORT_SYMBOL_GPL(rvt_mem_matches_at);

/**
 * rvt_mem_matches - check all of it for pattern
 * @mem: the memory
 * @seed: which pattern
 *
 * Return: true if every byte is right.
 */
bool rvt_mem_matches(struct rvt_mem *mem, u64 seed)
{
	return rvt_mem_matches_at(mem, 0, mem->len, seed);
}
EXPORT_SYMBOL_GPL(rvt_mem_matches);

/**
 * rvt_mem_copy_out - copy its beginning
 * @mem: the memory
 * @to: where to
 * @len: how much
 */
void rvt_mem_copy_out(struct rvt_mem *mem, void *to, u32 len)
{
	sg_copy_to_buffer(mem->sg, mem->nents, to, len);
}
EXPORT_SYMBOL_GPL(rvt_mem_copy_out);
