// SPDX-License-Identifier: GPL-2.0
/*
 * The rounds of "atp perf ... vs gloo": Gloo's ring over TCP.
 *
 * usage: perf-gloo RANK WORKERS BYTES ROUNDS ADDRESS-OF-RANK-0 OWN-ADDRESS
 */
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>

#include <gloo/rendezvous/context.h>
#include <gloo/transport/tcp/device.h>

#include "../atp/rounds.h"
#include "ring.hh"
#include "store.hh"

static int ring(void *arg, float *tensor, size_t lanes)
{
	auto context = static_cast<std::shared_ptr<gloo::Context> *>(arg);

	ring_allreduce(*context, tensor, lanes);
	return 0;
}

static int run(char **argv)
{
	struct rounds r = {};
	std::unique_ptr<Registry> registry;
	gloo::transport::tcp::attr attr;
	int err;

	r.name = "gloo";
	r.rank = atoi(argv[1]);
	r.workers = atoi(argv[2]);
	r.bytes = strtoul(argv[3], NULL, 10);
	r.count = atoi(argv[4]);
	if (!r.rank)
		registry.reset(new Registry(argv[5], r.workers));
	attr.hostname = argv[6];
	auto device = gloo::transport::tcp::CreateDevice(attr);
	auto mesh = std::make_shared<gloo::rendezvous::Context>(r.rank,
								r.workers);
	{
		TcpStore store(argv[5]);

		mesh->connectFullMesh(store, device);
	}
	// no rank needs it any more when it has found all others
	registry.reset();
	std::shared_ptr<gloo::Context> context = mesh;
	r.allreduce = ring;
	r.arg = &context;
	err = rounds_run(&r) || rounds_write(&r);
	rounds_free(&r);
	return err;
}

int main(int argc, char **argv)
{
	if (argc != 7) {
		fprintf(stderr, "perf-gloo is started by atp perf\n");
		return 1;
	}
	try {
		return run(argv) ? 1 : 0;
	} catch (const std::exception &e) {
		fprintf(stderr, "Error: gloo: %s\n", e.what());
		return 1;
	}
}
