// SPDX-License-Identifier: Apache-2.0
/// The Python face, golden._cmodel. golden/_cmodel.pyi documents and types it.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "cmodel.h"
#include "image.h"
#include "kernels.h"
#include "matmul.h"
#include "parallel.h"
#include "scalar.h"
#include "vector_block.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using Bytes = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<nb::ro, nb::ndim<3>, nb::device::cpu>;
using OutMatrix = nb::ndarray<nb::ndim<3>, nb::device::cpu>;
using Words = nb::ndarray<const std::uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using OutWords = nb::ndarray<std::uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

std::span<const std::byte> span_of(const nb::bytes& bytes) {
  return {static_cast<const std::byte*>(bytes.data()), bytes.size()};
}

/// The program in an image, or std::invalid_argument that says what is malformed.
npu::VectorProgram parsed(const nb::bytes& image) {
  try {
    return npu::parse_image(span_of(image));
  } catch (const npu::Fault& fault) {
    throw std::invalid_argument(fault.detail);
  }
}

/// A CModel that keeps the array alive whose bytes it changes.
class PyCModel {
 public:
  PyCModel(Bytes memory, npu::Address base, npu::Address limit, unsigned threads,
           const nb::bytes& programs)
      : array_(std::move(memory)),
        model_(npu::Memory(std::as_writable_bytes(std::span(array_.data(), array_.size())), base,
                           limit),
               threads, npu::ProgramMemory(span_of(programs))) {}

  unsigned execute(const nb::bytes& packet, std::uint32_t seq) {
    if (packet.size() != sizeof(npu::isa::Packet)) {
      throw std::invalid_argument("packet: need 64 bytes, got " + std::to_string(packet.size()));
    }
    npu::isa::Packet command{};
    std::memcpy(&command, packet.data(), sizeof command);
    const nb::gil_scoped_release release;
    return static_cast<unsigned>(model_.execute(command, seq));
  }

  npu::CModel& model() { return model_; }

 private:
  Bytes array_;
  npu::CModel model_;
};

template <class Array>
npu::MatrixRef matrix_ref(const char* name, const Array& array, unsigned dtype) {
  if (dtype >= npu::isa::kDTypeBytes.size() || array.itemsize() != npu::isa::kDTypeBytes[dtype]) {
    throw std::invalid_argument(std::string(name) + ": item size does not match the data type");
  }
  return {const_cast<std::byte*>(reinterpret_cast<const std::byte*>(array.data())),
          static_cast<npu::isa::DType>(dtype), array.stride(0), array.stride(1), array.stride(2)};
}

const npu::Kernels& kernels_named(const std::string& name) {
  for (const npu::Kernels* kernels : npu::usable_kernels()) {
    if (name.empty() || name == kernels->name) return *kernels;
  }
  throw std::invalid_argument("kernels: this host has no '" + name + "'");
}

void matmul(const Matrix& a, const Matrix& b, OutMatrix& c, unsigned src_dtype, unsigned dst_dtype,
            bool accumulate, unsigned threads, const std::string& kernels) {
  const npu::MatmulJob job{.batch = c.shape(0),
                           .m = c.shape(1),
                           .k = a.shape(2),
                           .n = c.shape(2),
                           .a = matrix_ref("a", a, src_dtype),
                           .b = matrix_ref("b", b, src_dtype),
                           .c = matrix_ref("c", c, dst_dtype),
                           .start = matrix_ref("c", c, dst_dtype),
                           .accumulate = accumulate};
  const bool fits = a.shape(0) == job.batch && a.shape(1) == job.m && b.shape(0) == job.batch &&
                    b.shape(1) == job.k && b.shape(2) == job.n && c.size() * job.k != 0;
  if (!fits) throw std::invalid_argument("matmul: need a[b,m,k], b[b,k,n], c[b,m,n], none empty");
  const std::array pair{job.a.dtype, job.c.dtype};
  if (std::ranges::find(npu::isa::kMatmulDTypes, pair) == npu::isa::kMatmulDTypes.end()) {
    throw std::invalid_argument("matmul: pair of data types not supported");
  }
  const npu::Kernels& set = kernels_named(kernels);
  const nb::gil_scoped_release release;
  npu::matmul(job, threads, set);
}

/// out[i] = function(inputs[i]...) on bit patterns; all arrays have the same length.
template <class Function, class... Inputs>
void map_words(OutWords& out, Function&& function, const Inputs&... inputs) {
  if (((inputs.size() != out.size()) || ...)) throw std::invalid_argument("lengths differ");
  const npu::FloatEnvironment environment;
  for (std::size_t i = 0; i < out.size(); ++i) out.data()[i] = function(inputs.data()[i]...);
}

/// Pads a block's words to what the loops of VECTOR cover.
std::vector<std::uint32_t> padded(const Words& words, std::size_t count) {
  if (words.size() != count) throw std::invalid_argument("lengths differ");
  std::vector<std::uint32_t> copy(words.data(), words.data() + count);
  copy.resize((count + npu::kVectorWords - 1) / npu::kVectorWords * npu::kVectorWords);
  return copy;
}

/// One instruction on every element, by the loops that VECTOR uses.
void micro(unsigned op, const Words& a, const Words& b, const Words& c, OutWords out,
           const std::string& kernels) {
  if (op >= npu::kMicroOps) throw std::invalid_argument("micro: no such instruction");
  const std::array operands{padded(a, out.size()), padded(b, out.size()), padded(c, out.size())};
  std::vector<std::uint32_t> result(operands[0].size());
  if (result.empty()) return;
  const npu::FloatEnvironment environment;
  kernels_named(kernels).vector.micro[op](
      {{{operands[0].data(), false}, {operands[1].data(), false}, {operands[2].data(), false}},
       result.data(),
       result.size()});
  std::copy_n(result.begin(), out.size(), out.data());
}

/// A program on words, element by element; a reduction's elements before they are reduced.
void run_program(const nb::bytes& image, const std::vector<Words>& sources,
                 const std::vector<std::uint32_t>& imms, std::vector<OutWords> outs,
                 const std::string& kernels) {
  constexpr auto kWord = npu::isa::DType::kInt32;
  const npu::VectorProgram program = parsed(image);
  const std::size_t elements = outs.empty() ? 0 : outs.front().size();
  const auto is_long = [&](const auto& words) { return words.size() == elements; };
  std::array<std::uint32_t, npu::isa::kImmediates> words{};
  const bool fits = sources.size() == program.sources && outs.size() == program.results &&
                    imms.size() <= words.size() && std::ranges::all_of(sources, is_long) &&
                    std::ranges::all_of(outs, is_long);
  if (!fits) throw std::invalid_argument("run_program: sources, imms and outs do not fit");
  std::ranges::copy(imms, words.begin());
  npu::VectorBlock block(program, words, kernels_named(kernels).vector);
  const nb::gil_scoped_release release;
  const npu::FloatEnvironment environment;
  const auto run = [](const std::uint32_t* at, std::size_t count) {
    auto* bytes = const_cast<std::byte*>(reinterpret_cast<const std::byte*>(at));
    return npu::Run{bytes, kWord, sizeof *at, count};
  };
  for (std::size_t first = 0; first < elements; first += npu::kBlockWords) {
    const std::size_t count = std::min(npu::kBlockWords, elements - first);
    block.begin(count);
    for (std::size_t s = 0; s < sources.size(); ++s) {
      block.load(s, 0, run(sources[s].data() + first, count));
    }
    block.number(0, count, first);
    block.execute();
    for (std::size_t r = 0; r < outs.size(); ++r) {
      block.store(r, 0, run(outs[r].data() + first, count));
    }
  }
}

void bind_scalars(nb::module_& module) {
  namespace scalar = npu::scalar;
  module.def(
      "fma32",
      [](const Words& a, const Words& b, const Words& c, OutWords out) {
        map_words(out, scalar::fma32, a, b, c);
      },
      "a"_a.noconvert(), "b"_a.noconvert(), "c"_a.noconvert(), "out"_a.noconvert());
  module.def(
      "widen_fp16",
      [](const Words& a, OutWords out) {
        map_words(
            out,
            [](std::uint32_t x) {
              return scalar::canonical(scalar::widen_fp16(static_cast<std::uint16_t>(x)));
            },
            a);
      },
      "a"_a.noconvert(), "out"_a.noconvert());
  module.def(
      "widen_bf16",
      [](const Words& a, OutWords out) {
        map_words(
            out,
            [](std::uint32_t x) {
              return scalar::canonical(scalar::widen_bf16(static_cast<std::uint16_t>(x)));
            },
            a);
      },
      "a"_a.noconvert(), "out"_a.noconvert());
  module.def(
      "narrow_fp16", [](const Words& a, OutWords out) { map_words(out, scalar::narrow_fp16, a); },
      "a"_a.noconvert(), "out"_a.noconvert());
  module.def(
      "narrow_bf16", [](const Words& a, OutWords out) { map_words(out, scalar::narrow_bf16, a); },
      "a"_a.noconvert(), "out"_a.noconvert());
  module.def(
      "mac8",
      [](const Words& a, const Words& b, const Words& acc, OutWords out) {
        map_words(
            out,
            [](std::uint32_t x, std::uint32_t y, std::uint32_t z) {
              return scalar::mac8(static_cast<std::int8_t>(x), static_cast<std::int8_t>(y), z);
            },
            a, b, acc);
      },
      "a"_a.noconvert(), "b"_a.noconvert(), "acc"_a.noconvert(), "out"_a.noconvert());
}

}  // namespace

NB_MODULE(_cmodel, module) {
  nb::class_<PyCModel>(module, "CModel")
      .def(nb::init<Bytes, npu::Address, npu::Address, unsigned, const nb::bytes&>(),
           "memory"_a.noconvert(), "mem_base"_a, "mem_limit"_a, "threads"_a = 0,
           "programs"_a = nb::bytes("", 0))
      .def("execute", &PyCModel::execute, "packet"_a, "seq"_a = 0)
      .def("forget_loaded_programs", [](PyCModel& self) { self.model().forget_loaded_programs(); })
      .def_prop_ro("last_fault", [](PyCModel& self) { return self.model().last_fault(); })
      .def(
          "poison",
          [](PyCModel& self, npu::Address address, std::uint64_t size_bytes, bool read,
             bool write) { self.model().memory().poison(address, size_bytes, read, write); },
          "address"_a, "size_bytes"_a, "read"_a, "write"_a)
      .def("clear_poison", [](PyCModel& self) { self.model().memory().clear_poison(); })
      .def("dirty_pages", [](PyCModel& self) { return self.model().memory().dirty_pages(); })
      .def("clear_dirty", [](PyCModel& self) { self.model().memory().clear_dirty(); });
  module.attr("PAGE_BYTES") = npu::Memory::kPageBytes;
  module.def("matmul", &matmul, "a"_a.noconvert(), "b"_a.noconvert(), "c"_a.noconvert(),
             "src_dtype"_a, "dst_dtype"_a, "accumulate"_a = false, "threads"_a = 0,
             "kernels"_a = "");
  module.def("kernel_names", [] {
    std::vector<std::string> names;
    for (const npu::Kernels* kernels : npu::usable_kernels()) names.emplace_back(kernels->name);
    return names;
  });
  module.def("micro", &micro, "op"_a, "a"_a.noconvert(), "b"_a.noconvert(), "c"_a.noconvert(),
             "out"_a.noconvert(), "kernels"_a = "");
  module.def("run_program", &run_program, "image"_a, "sources"_a, "imms"_a, "outs"_a.noconvert(),
             "kernels"_a = "");
  bind_scalars(module);
}
