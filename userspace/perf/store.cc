// SPDX-License-Identifier: GPL-2.0
/*
 * A question is a letter, 's' or 'g', and a key; 's' is followed by the value,
 * which is the answer to 'g', as soon as there is one.  Keys and values are
 * lengths of four bytes and so many bytes.
 */
#include <arpa/inet.h>
#include <cstring>
#include <netdb.h>
#include <stdexcept>
#include <sys/socket.h>
#include <unistd.h>

#include "store.hh"

// of the registry, while Gloo connects
static const char port[] = "4799";
static const int tries = 600, pause_us = 100000;
static const uint32_t longest = 1 << 20;

static void put(int fd, const void *data, size_t len)
{
	const char *p = static_cast<const char *>(data);

	while (len) {
		ssize_t n = send(fd, p, len, MSG_NOSIGNAL);

		if (n <= 0)
			throw std::runtime_error("a rank is gone");
		p += n;
		len -= n;
	}
}

static void put_bytes(int fd, const char *data, size_t len)
{
	uint32_t head = htonl(len);

	put(fd, &head, sizeof(head));
	put(fd, data, len);
}

// false: the other end has closed
static bool take(int fd, void *data, size_t len)
{
	return !len ||
	       recv(fd, data, len, MSG_WAITALL) == static_cast<ssize_t>(len);
}

static bool take_bytes(int fd, std::vector<char> *data)
{
	uint32_t len;

	if (!take(fd, &len, sizeof(len)))
		return false;
	len = ntohl(len);
	if (len > longest)
		return false;
	data->resize(len);
	return take(fd, data->data(), len);
}

// A socket and its address, which the caller frees
static int make_socket(const char *address, struct addrinfo **at)
{
	struct addrinfo hints = {};
	int fd;

	hints.ai_flags = AI_NUMERICHOST;
	hints.ai_socktype = SOCK_STREAM;
	if (getaddrinfo(address, port, &hints, at))
		throw std::runtime_error("no address");
	fd = socket((*at)->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		freeaddrinfo(*at);
		throw std::runtime_error("no socket");
	}
	return fd;
}

Registry::Registry(const char *address, int ranks)
{
	struct addrinfo *at;
	int one = 1, err;

	listener = make_socket(address, &at);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	err = bind(listener, at->ai_addr, at->ai_addrlen) ||
	      listen(listener, ranks);
	freeaddrinfo(at);
	if (err) {
		close(listener);
		throw std::runtime_error(std::string("TCP port ") + port +
					 " is taken");
	}
	acceptor = std::thread(&Registry::accept_all, this, ranks);
}

Registry::~Registry()
{
	// all ranks have come, unless something has failed
	shutdown(listener, SHUT_RDWR);
	acceptor.join();
	for (auto &thread : threads)
		thread.join();
	close(listener);
}

void Registry::accept_all(int ranks)
{
	while (ranks--) {
		int fd = accept(listener, NULL, NULL);

		if (fd < 0)
			return;
		threads.emplace_back(&Registry::serve, this, fd);
	}
}

void Registry::serve(int fd)
{
	std::vector<char> key, value;
	char what;

	try {
		while (take(fd, &what, 1) && take_bytes(fd, &key)) {
			std::string name(key.begin(), key.end());
			std::unique_lock<std::mutex> hold(lock);

			if (what == 's') {
				if (!take_bytes(fd, &value))
					break;
				values[name] = value;
				changed.notify_all();
				continue;
			}
			if (!changed.wait_for(hold, std::chrono::minutes(1),
					      [&] { return values.count(name); }))
				break;
			value = values[name];
			hold.unlock();
			put_bytes(fd, value.data(), value.size());
		}
	} catch (const std::exception &) {
		// who has asked is gone
	}
	close(fd);
}

TcpStore::TcpStore(const char *address)
{
	struct addrinfo *at;
	int i, err = -1;

	for (i = 0; i < tries; i++) {
		fd = make_socket(address, &at);
		err = connect(fd, at->ai_addr, at->ai_addrlen);
		freeaddrinfo(at);
		if (!err)
			return;
		close(fd);
		usleep(pause_us);
	}
	throw std::runtime_error("rank 0 does not come");
}

TcpStore::~TcpStore()
{
	close(fd);
}

void TcpStore::set(const std::string &key, const std::vector<char> &data)
{
	put(fd, "s", 1);
	put_bytes(fd, key.data(), key.size());
	put_bytes(fd, data.data(), data.size());
}

std::vector<char> TcpStore::get(const std::string &key)
{
	std::vector<char> value;

	put(fd, "g", 1);
	put_bytes(fd, key.data(), key.size());
	if (!take_bytes(fd, &value))
		throw std::runtime_error("not all ranks have come");
	return value;
}

void TcpStore::wait(const std::vector<std::string> &keys)
{
	for (const auto &key : keys)
		get(key);
}
