// SPDX-License-Identifier: GPL-2.0-only
/*
 * Addresses as text and as sockaddrs. Stricter than the kernel's in4_pton() and in6_pton(): what
 * inet_pton(3) refuses, this refuses, so that no address has a spelling only the kernel takes.
 */
#include <linux/ctype.h>
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/inet.h>
#include <linux/kernel.h>
#include <linux/netdevice.h>
#include <linux/rcupdate.h>
#include <linux/string.h>
#include <net/ipv6.h>
#include <rdma/ib.h>
#include <rdma/ib_mad.h>
#include <rdma/rdma_cm.h>

#include <rail/addr.h>
#include <rail/compat.h>

#define IP_PREFIX	"ip:"
#define GID_PREFIX	"gid:"

/* A number from 1 to @max: kstrtouint() alone would also take a sign, zeros in front, a newline. */
static int number_parse(const char *text, size_t len, unsigned int max, unsigned int *number)
{
	char buf[sizeof("4294967295")];

	if (!len || len >= sizeof(buf) || text[0] == '0' ||
	    !isdigit(text[0]) || !isdigit(text[len - 1]))
		return -EINVAL;
	memcpy(buf, text, len);
	buf[len] = '\0';
	if (kstrtouint(buf, 10, number) || *number > max)
		return -EINVAL;
	return 0;
}

static int port_parse(const char *text, size_t len, u16 *port)
{
	unsigned int number;
	int ret;

	ret = number_parse(text, len, U16_MAX, &number);
	if (!ret)
		*port = number;
	return ret;
}

static int v4_parse(const char *text, size_t len, struct in_addr *ip)
{
	char canonical[INET_ADDRSTRLEN];
	int n;

	if (!len || len >= sizeof(canonical) ||
	    !in4_pton(text, len, (u8 *)&ip->s_addr, -1, NULL))
		return -EINVAL;
	/* in4_pton() stops at what it does not know and skips zeros: demand the one exact form. */
	n = scnprintf(canonical, sizeof(canonical), "%pI4", &ip->s_addr);
	return n == len && !memcmp(canonical, text, len) ? 0 : -EINVAL;
}

static int v6_parse(const char *text, size_t len, struct in6_addr *ip)
{
	const char *end = text + len;
	unsigned int groups = 0;
	const char *group, *next;
	struct in_addr v4;

	if (!len || len >= INET6_ADDRSTRLEN || !in6_pton(text, len, ip->s6_addr, -1, &next) ||
	    next != end)
		return -EINVAL;

	/* Left to refuse: overlong groups, a loose IPv4 tail, a "::" that stands for nothing. */
	for (group = text; group < end; group = next + 1) {
		next = memchr(group, ':', end - group) ?: end;
		if (memchr(group, '.', next - group)) {
			if (v4_parse(group, next - group, &v4))
				return -EINVAL;
			groups += 2;
		} else if (next - group > 4) {
			return -EINVAL;
		} else if (next != group) {
			groups++;
		}
	}
	return groups == 8 && strnstr(text, "::", len) ? -EINVAL : 0;
}

/* A scope of digits only is an index, even where an interface has such a name: so it prints. */
static int scope_parse(struct net *net, const char *text, size_t len, u32 *scope)
{
	const struct net_device *dev;
	unsigned int index;
	char name[IFNAMSIZ];

	if (!len || len >= sizeof(name))
		return -EINVAL;
	memcpy(name, text, len);
	name[len] = '\0';

	rcu_read_lock();
	if (strspn(name, "0123456789") == len) {
		if (number_parse(text, len, INT_MAX, &index)) {
			rcu_read_unlock();
			return -EINVAL;
		}
		dev = dev_get_by_index_rcu(net, index);
	} else if (dev_valid_name(name)) {
		dev = dev_get_by_name_rcu(net, name);
	} else {
		rcu_read_unlock();
		return -EINVAL;
	}
	if (dev)
		*scope = dev->ifindex;
	rcu_read_unlock();
	return dev ? 0 : -ENODEV;
}

static int ip4_parse(const char *text, size_t len, u16 port, struct sockaddr_storage *addr)
{
	struct sockaddr_in *sin = (struct sockaddr_in *)addr;
	const char *colon = memchr(text, ':', len);
	size_t iplen = colon ? colon - text : len;
	struct in_addr ip;

	if (v4_parse(text, iplen, &ip))
		return -EINVAL;
	if (colon && port_parse(colon + 1, len - iplen - 1, &port))
		return -EINVAL;

	memset(addr, 0, sizeof(*addr));
	sin->sin_family = AF_INET;
	sin->sin_addr = ip;
	sin->sin_port = htons(port);
	return 0;
}

static int ip6_parse(struct net *net, const char *text, size_t len, u16 port,
		     struct sockaddr_storage *addr)
{
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)addr;
	const char *bracket, *percent;
	struct in6_addr ip;
	size_t iplen;
	u32 scope = 0;
	int ret;

	if (text[0] == '[') {
		const char *rest;

		bracket = memchr(text, ']', len);
		if (!bracket)
			return -EINVAL;
		rest = bracket + 1;
		len -= rest - text;
		if (len && (*rest != ':' || port_parse(rest + 1, len - 1, &port)))
			return -EINVAL;
		text++;
		len = bracket - text;
	}

	percent = memchr(text, '%', len);
	iplen = percent ? percent - text : len;
	if (v6_parse(text, iplen, &ip))
		return -EINVAL;
	if (percent) {
		if (!(ipv6_addr_type(&ip) & IPV6_ADDR_LINKLOCAL))
			return -EINVAL;
		ret = scope_parse(net, percent + 1, len - iplen - 1, &scope);
		if (ret)
			return ret;
	}

	memset(addr, 0, sizeof(*addr));
	sin6->sin6_family = AF_INET6;
	sin6->sin6_addr = ip;
	sin6->sin6_port = htons(port);
	sin6->sin6_scope_id = scope;
	return 0;
}

static int gid_parse(const char *text, size_t len, u16 port, struct sockaddr_storage *addr)
{
	struct sockaddr_ib *sib = (struct sockaddr_ib *)addr;
	struct in6_addr gid;

	if (v6_parse(text, len, &gid))
		return -EINVAL;

	memset(addr, 0, sizeof(*addr));
	sib->sib_family = AF_IB;
	/* rdma_cm looks for a device by this key as well, and 0 is no key. */
	sib->sib_pkey = htons(IB_DEFAULT_PKEY_FULL);
	memcpy(sib->sib_addr.sib_raw, gid.s6_addr, sizeof(gid));
	sib->sib_sid = cpu_to_be64(RDMA_IB_IP_PS_IB | port);
	sib->sib_sid_mask = cpu_to_be64(U64_MAX);
	return 0;
}

/**
 * rail_addr_parse - make a socket address of its text
 * @net: where to look up the interface of a scope ("%eth0")
 * @text: the address, for example "ip:192.0.2.1:1234"; need not end in a NUL
 * @len: how many bytes of @text to read; all of them must belong to the address
 * @port: the port where @text names none; a "gid:" address never names one
 * @addr: where to put the address; written only on success
 *
 * A scope is an interface's name, or its index where it is all digits; only a link-local address
 * may have one. The service id of a "gid:" address is in the port space RDMA_PS_IB, which the
 * rdma_cm_id that uses it must have been created in.
 *
 * Context: any.
 * Return: 0, -EINVAL where @text is no address, -ENODEV where @net has no interface of its scope.
 */
int rail_addr_parse(struct net *net, const char *text, size_t len, u16 port,
		    struct sockaddr_storage *addr)
{
	const size_t ip = strlen(IP_PREFIX), gid = strlen(GID_PREFIX);
	const char *colon;

	if (memchr(text, '\0', len))
		return -EINVAL;

	if (len > gid && !memcmp(text, GID_PREFIX, gid))
		return gid_parse(text + gid, len - gid, port, addr);

	if (len <= ip || memcmp(text, IP_PREFIX, ip))
		return -EINVAL;
	text += ip;
	len -= ip;
	/* IPv4 with a port has one colon, IPv6 without a port has two at least. */
	colon = memchr(text, ':', len);
	if (text[0] == '[' || (colon && memchr(colon + 1, ':', len - (colon + 1 - text))))
		return ip6_parse(net, text, len, port, addr);
	return ip4_parse(text, len, port, addr);
}
EXPORT_SYMBOL_GPL(rail_addr_parse);

/**
 * rail_path_parse - make socket addresses of the text of a path
 * @net: where to look up the interface of a scope
 * @text: "source@destination", "source,destination" or "destination"; need not end in a NUL
 * @len: how many bytes of @text to read; all of them must belong to the path
 * @port: the destination's port where @text names none
 * @src: where to put the source; its family is AF_UNSPEC where @text names none, its port is 0
 *	(any) where @text names none; written only on success
 * @dst: where to put the destination; written only on success
 *
 * An interface with '@' or ',' in its name can be given by its index only.
 *
 * Context: any.
 * Return: 0, -EAFNOSUPPORT where source and destination are not of one family, else as
 * rail_addr_parse().
 */
int rail_path_parse(struct net *net, const char *text, size_t len, u16 port,
		    struct sockaddr_storage *src, struct sockaddr_storage *dst)
{
	struct sockaddr_storage from = { .ss_family = AF_UNSPEC }, to;
	size_t srclen;
	int ret;

	for (srclen = 0; srclen < len; srclen++)
		if (text[srclen] == '@' || text[srclen] == ',')
			break;

	if (srclen < len) {
		ret = rail_addr_parse(net, text, srclen, 0, &from);
		if (ret)
			return ret;
		text += srclen + 1;
		len -= srclen + 1;
	}
	ret = rail_addr_parse(net, text, len, port, &to);
	if (ret)
		return ret;
	if (from.ss_family != AF_UNSPEC && from.ss_family != to.ss_family)
		return -EAFNOSUPPORT;

	*src = from;
	*dst = to;
	return 0;
}
EXPORT_SYMBOL_GPL(rail_path_parse);

static size_t ip6_print(char *buf, size_t size, const struct sockaddr_in6 *sin6)
{
	if (!sin6->sin6_scope_id || !(ipv6_addr_type(&sin6->sin6_addr) & IPV6_ADDR_LINKLOCAL))
		return scnprintf(buf, size, "%pI6c", &sin6->sin6_addr);
	return scnprintf(buf, size, "%pI6c%%%u", &sin6->sin6_addr, sin6->sin6_scope_id);
}

/**
 * rail_addr_print - print an address without its port
 * @buf: where to
 * @size: of @buf; RAIL_ADDR_STRLEN is always enough
 * @addr: what
 *
 * What is printed of an IP or GID address, rail_addr_parse() takes. A scope is printed as a number.
 * An address of another family is printed as "unspecified" or "family:N", for logs only.
 *
 * Context: any.
 * Return: how many characters were printed, the NUL not counted; as scnprintf(), so cut to @size.
 */
size_t rail_addr_print(char *buf, size_t size, const struct sockaddr *addr)
{
	const struct sockaddr_in6 *sin6 = (const struct sockaddr_in6 *)addr;
	const struct sockaddr_ib *sib = (const struct sockaddr_ib *)addr;
	const struct sockaddr_in *sin = (const struct sockaddr_in *)addr;
	size_t n;

	switch (addr->sa_family) {
	case AF_INET:
		return scnprintf(buf, size, IP_PREFIX "%pI4", &sin->sin_addr);
	case AF_INET6:
		n = scnprintf(buf, size, IP_PREFIX);
		return n + ip6_print(buf + n, size - n, sin6);
	case AF_IB:
		return scnprintf(buf, size, GID_PREFIX "%pI6", sib->sib_addr.sib_raw);
	case AF_UNSPEC:
		return scnprintf(buf, size, "unspecified");
	default:
		return scnprintf(buf, size, "family:%u", addr->sa_family);
	}
}
EXPORT_SYMBOL_GPL(rail_addr_print);

/**
 * rail_addr_print_port - print an address with its port
 * @buf: where to
 * @size: of @buf; RAIL_ADDR_STRLEN is always enough
 * @addr: what
 *
 * As rail_addr_print() where the port is 0 or the address is no IP address.
 *
 * Context: any.
 * Return: how many characters were printed, the NUL not counted; as scnprintf(), so cut to @size.
 */
size_t rail_addr_print_port(char *buf, size_t size, const struct sockaddr *addr)
{
	const struct sockaddr_in6 *sin6 = (const struct sockaddr_in6 *)addr;
	u16 port = rail_addr_port(addr);
	size_t n;

	if (!port || (addr->sa_family != AF_INET && addr->sa_family != AF_INET6))
		return rail_addr_print(buf, size, addr);

	if (addr->sa_family == AF_INET) {
		n = rail_addr_print(buf, size, addr);
		return n + scnprintf(buf + n, size - n, ":%u", port);
	}
	n = scnprintf(buf, size, IP_PREFIX "[");
	n += ip6_print(buf + n, size - n, sin6);
	return n + scnprintf(buf + n, size - n, "]:%u", port);
}
EXPORT_SYMBOL_GPL(rail_addr_print_port);

/**
 * rail_path_print - print a path, as it is named in sysfs
 * @buf: where to
 * @size: of @buf; RAIL_PATH_STRLEN is always enough
 * @src: the source; NULL or of family AF_UNSPEC where there is none
 * @dst: the destination
 *
 * Prints "source@destination", or "destination" where there is no source, without the ports.
 *
 * Context: any.
 * Return: how many characters were printed, the NUL not counted; as scnprintf(), so cut to @size.
 */
size_t rail_path_print(char *buf, size_t size, const struct sockaddr *src,
		       const struct sockaddr *dst)
{
	size_t n = 0;

	if (src && src->sa_family != AF_UNSPEC) {
		n = rail_addr_print(buf, size, src);
		n += scnprintf(buf + n, size - n, "@");
	}
	return n + rail_addr_print(buf + n, size - n, dst);
}
EXPORT_SYMBOL_GPL(rail_path_print);

/**
 * rail_addr_equal - whether two addresses are the same
 * @a: one
 * @b: the other
 *
 * Compares family, address and port, and the scope where it means something: of link-local IPv6
 * addresses. Flow label, partition key and service id beyond the port are not compared.
 *
 * Context: any.
 * Return: true where they are the same; false too where the family is none that RAIL knows.
 */
bool rail_addr_equal(const struct sockaddr *a, const struct sockaddr *b)
{
	if (a->sa_family != b->sa_family || rail_addr_port(a) != rail_addr_port(b))
		return false;

	switch (a->sa_family) {
	case AF_INET: {
		const struct sockaddr_in *a4 = (const struct sockaddr_in *)a;
		const struct sockaddr_in *b4 = (const struct sockaddr_in *)b;

		return a4->sin_addr.s_addr == b4->sin_addr.s_addr;
	}
	case AF_INET6: {
		const struct sockaddr_in6 *a6 = (const struct sockaddr_in6 *)a;
		const struct sockaddr_in6 *b6 = (const struct sockaddr_in6 *)b;

		return ipv6_addr_equal(&a6->sin6_addr, &b6->sin6_addr) &&
		       (a6->sin6_scope_id == b6->sin6_scope_id ||
			!(ipv6_addr_type(&a6->sin6_addr) & IPV6_ADDR_LINKLOCAL));
	}
	case AF_IB:
		return !ib_addr_cmp(&((const struct sockaddr_ib *)a)->sib_addr,
				    &((const struct sockaddr_ib *)b)->sib_addr);
	default:
		return false;
	}
}
EXPORT_SYMBOL_GPL(rail_addr_equal);

/**
 * rail_addr_port - the port of an address
 * @addr: the address
 *
 * Context: any.
 * Return: the port in host byte order; 0 where there is none.
 */
u16 rail_addr_port(const struct sockaddr *addr)
{
	const struct sockaddr_ib *sib = (const struct sockaddr_ib *)addr;

	switch (addr->sa_family) {
	case AF_INET:
		return ntohs(((const struct sockaddr_in *)addr)->sin_port);
	case AF_INET6:
		return ntohs(((const struct sockaddr_in6 *)addr)->sin6_port);
	case AF_IB:
		return be64_to_cpu(sib->sib_sid & sib->sib_sid_mask) & U16_MAX;
	default:
		return 0;
	}
}
EXPORT_SYMBOL_GPL(rail_addr_port);

/**
 * rail_addr_set_port - set the port of an address
 * @addr: the address; one of a family that RAIL does not know is left as it is
 * @port: in host byte order
 *
 * Context: any.
 */
void rail_addr_set_port(struct sockaddr *addr, u16 port)
{
	struct sockaddr_ib *sib = (struct sockaddr_ib *)addr;

	switch (addr->sa_family) {
	case AF_INET:
		((struct sockaddr_in *)addr)->sin_port = htons(port);
		break;
	case AF_INET6:
		((struct sockaddr_in6 *)addr)->sin6_port = htons(port);
		break;
	case AF_IB:
		sib->sib_sid &= cpu_to_be64(RDMA_IB_IP_PS_MASK);
		sib->sib_sid |= cpu_to_be64(port);
		sib->sib_sid_mask |= cpu_to_be64(U16_MAX);
		break;
	}
}
EXPORT_SYMBOL_GPL(rail_addr_set_port);
