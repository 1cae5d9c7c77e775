/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where the ranks of Gloo find each other: a list of keys and values at rank 0,
 * over TCP, as hosts share no files.
 */
#ifndef _ATP_PERF_STORE_HH
#define _ATP_PERF_STORE_HH

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gloo/rendezvous/store.h>

// The list itself, at rank 0, with a thread for each rank that asks
class Registry {
public:
	Registry(const char *address, int ranks);
	~Registry();

private:
	void accept_all(int ranks);
	void serve(int fd);

	int listener;
	std::mutex lock;
	std::condition_variable changed;
	std::map<std::string, std::vector<char>> values;
	std::vector<std::thread> threads;
	std::thread acceptor;
};

// A rank's connection to it
class TcpStore : public gloo::rendezvous::Store {
public:
	// the registry may begin later than this
	explicit TcpStore(const char *address);
	~TcpStore() override;

	void set(const std::string &key, const std::vector<char> &data)
		override;
	std::vector<char> get(const std::string &key) override;
	void wait(const std::vector<std::string> &keys) override;
	using gloo::rendezvous::Store::wait;

private:
	int fd;
};

#endif /* _ATP_PERF_STORE_HH */
