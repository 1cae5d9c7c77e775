// SPDX-License-Identifier: GPL-2.0
/*
 * A rank of Gloo over TCP.
 *
 * usage: gloo SOCKET RANK WORKERS ADDRESS FOLDER ring|halving-doubling
 *
 * Ranks find each other by files in FOLDER.
 */
#include <chrono>
#include <cstring>
#include <exception>
#include <iostream>
#include <memory>
#include <vector>

#include <gloo/allreduce_halving_doubling.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include "../../perf/ring.hh"
#include "member.h"

// what a round may take on a slow link
static const auto patience = std::chrono::minutes(30);

static std::shared_ptr<gloo::rendezvous::Context> context;
static std::vector<std::unique_ptr<gloo::Algorithm>> algorithms;

static int ring(float *tensor, size_t count, int)
{
	ring_allreduce(context, tensor, count);
	return 0;
}

// This one is bound to a tensor when it is made, and has buffers of its own.
static int prepare(float **tensors, int number, size_t count)
{
	for (int i = 0; i < number; i++)
		algorithms.emplace_back(
			new gloo::AllreduceHalvingDoubling<float>(
				context, { tensors[i] }, count));
	return 0;
}

static int halving_doubling(float *, size_t, int index)
{
	algorithms[index]->run();
	return 0;
}

static void release()
{
	algorithms.clear();
}

static int serve(char **argv)
{
	gloo::transport::tcp::attr attr;
	struct member m = {};

	m.rank = member_number(argv[2]);
	m.workers = member_number(argv[3]);
	if (!strcmp(argv[6], "ring")) {
		m.allreduce = ring;
	} else {
		m.prepare = prepare;
		m.allreduce = halving_doubling;
		m.release = release;
	}
	attr.hostname = argv[4];
	auto device = gloo::transport::tcp::CreateDevice(attr);
	gloo::rendezvous::FileStore store(argv[5]);
	context = std::make_shared<gloo::rendezvous::Context>(m.rank,
							      m.workers);
	context->setTimeout(patience);
	context->connectFullMesh(store, device);
	return member_serve(&m, argv[1]);
}

int main(int argc, char **argv)
{
	if (argc != 7)
		return 2;
	try {
		return serve(argv);
	} catch (const std::exception &e) {
		std::cerr << "gloo: " << e.what() << std::endl;
		return 1;
	}
}
