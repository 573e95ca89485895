// SPDX-License-Identifier: Apache-2.0
// Bench of the matrix engine behind the memory controller, with other traffic beside it: random
// windows, errors, and cycle counts. Arguments: [seed] [rounds] [result.json]. One line per part;
// stops at the first difference.
#include "bench.hpp"
#include "corners.hpp"
#include "product.hpp"

using Bench = BenchOf<MatrixEngine>;

namespace {

// The first element that differs, with what the engine made of it.
void explain(Bench& bench, const Product& product) {
  product.each_result([&](uint64_t i, uint64_t y, uint64_t x, uint64_t at) {
    const uint32_t is = load(product.c.dtype, &bench.memory.at(at));
    const uint32_t should = load(product.c.dtype, &bench.memory.want(at));
    if (is != should)
      fail("%s, %llu × %llu × %llu × %llu, types %u to %u, element %llu %llu %llu: %x, expected %x",
           product.name, (unsigned long long)product.batch, (unsigned long long)product.m,
           (unsigned long long)product.k, (unsigned long long)product.n, unsigned(product.a.dtype),
           unsigned(product.c.dtype), (unsigned long long)i, (unsigned long long)y,
           (unsigned long long)x, is, should);
  });
}

void execute(Bench& bench, const Product& product) {
  product.apply(bench.memory);
  bench.engine.start(product);
  bench.run();
  check(bench.engine.err == 0, "%s: error %u", product.name, bench.engine.err);
  explain(bench, product);
  summary.compared += bench.memory.compare(kMemBase, kMemLimit, product.name);
}

void products(uint64_t seed, uint64_t count) {
  Bench bench(seed);
  ProductMaker maker(bench.memory, bench.random);
  uint64_t terms = 0;
  for (uint64_t i = 0; i < count; ++i) {
    bench.shuffle_conditions();
    const Product product = maker.make();
    if (bench.random.chance(30)) bench.traffic(3);
    execute(bench, product);
    terms += product.batch * product.m * product.k * product.n;
  }
  std::printf("products %llu, %llu terms, differing 0\n", (unsigned long long)count,
              (unsigned long long)terms);
}

// A few bad lines of what the command touches: of its result, and of each operand, of where sums
// start and of scales as often.
void spoil(Bench& bench, const Product& product) {
  bench.memory.clear_errors();
  std::vector<std::pair<const Window*, std::vector<uint64_t>>> sources;
  product.each_source([&](const Window& window, uint64_t at) {
    auto found = std::find_if(sources.begin(), sources.end(),
                              [&](const auto& source) { return source.first == &window; });
    if (found == sources.end()) found = sources.insert(found, {&window, {}});
    found->second.push_back(at);
  });
  std::vector<uint64_t> results;
  product.each_result([&](uint64_t, uint64_t, uint64_t, uint64_t at) { results.push_back(at); });
  for (uint64_t lines = bench.random.below(4); lines != 0; --lines) {
    const bool result = sources.empty() || bench.random.chance(40);
    const auto& addresses = result ? results : sources[bench.random.below(sources.size())].second;
    const uint64_t at = addresses[bench.random.below(addresses.size())];
    bench.memory.bad[(at - kMemBase) / kLine] = true;
  }
}

void errors(uint64_t seed, uint64_t count) {
  Bench bench(seed);
  ProductMaker maker(bench.memory, bench.random);
  uint64_t reads = 0, writes = 0, clean = 0;
  for (uint64_t i = 0; i < count; ++i) {
    bench.shuffle_conditions();
    bench.memory.clear_errors();
    const Product product = maker.make();
    spoil(bench, product);
    bool source = false, target = false;
    product.each_source([&](const Window&, uint64_t at) { source |= bench.memory.bad_at(at); });
    product.each_result(
        [&](uint64_t, uint64_t, uint64_t, uint64_t at) { target |= bench.memory.bad_at(at); });
    if (!source && !target) product.apply(bench.memory);
    if (bench.random.chance(30)) bench.traffic(3);
    bench.engine.start(product);
    bench.run();
    const unsigned expected = source ? kBusRead : target ? kBusWrite : 0, got = bench.engine.err;
    check(got == expected, "%s: error %u, expected %u", product.name, got, expected);
    // The destination is unspecified after an error; every other byte must survive.
    if (source || target)
      product.each_result([&](uint64_t, uint64_t, uint64_t, uint64_t at) {
        std::memcpy(&bench.memory.want(at), &bench.memory.at(at), product.c.bytes());
      });
    summary.compared += bench.memory.compare(kMemBase, kMemLimit, "after an error");
    reads += got == kBusRead, writes += got == kBusWrite, clean += got == 0;
  }
  check(reads && writes && clean, "errors: a case never happened");
  std::printf("errors   %llu products: %llu read, %llu write, %llu clean\n",
              (unsigned long long)count, (unsigned long long)reads, (unsigned long long)writes,
              (unsigned long long)clean);
}

// Few terms: what is read and written takes longer than the sums. Many: the sums do.
void stalls() {
  check_stalls<Bench>(
      "MATMUL",
      [](Bench& bench, bool is_long) {
        const auto& slow = bench.slave.shape.stalls.percent;
        Product product = corners::fp32_product("product", 1, 1);
        const uint64_t rows = is_long ? 128 : 4, terms = slow[kW] != 0   ? 8
                                                         : slow[kR] != 0 ? 16
                                                                         : 256;
        product.m = product.n = rows, product.k = terms;
        product.a.base = kConstBase;
        product.a.row = corners::axis(1, rows, 0, terms);
        product.a.col = product.b.row = corners::axis(1, terms);
        product.b.row.stride[2] = rows;
        product.b.col = product.c.col = corners::axis(1, rows);
        product.c.row = corners::axis(1, rows, 0, rows);
        product.b.base = kConstBase + 0x10000;
        product.apply(bench.memory);
        bench.engine.start(product);
      },
      1);
}

}  // namespace

int main(int argc, char** argv) {
  return bench_main(argc, argv, [](uint64_t seed, uint64_t rounds) {
    corners::all<Bench>(seed, execute);
    stalls();
    products(seed + 1, rounds * 10);
    errors(seed + 2, std::max<uint64_t>(rounds * 4, 80));
  });
}
