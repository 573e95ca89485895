// SPDX-License-Identifier: Apache-2.0
// The kernels that compute nothing: tensors without contents, sizes and views. All others are in
// Python, below the fallback of driver/torch_device/dispatch.py.
#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/autocast_mode.h>
#include <ATen/native/DispatchStub.h>
#include <ATen/native/Resize.h>
#include <ATen/native/ResizeCommon.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/ops/_reshape_alias_cpu_dispatch.h>
#include <ATen/ops/as_strided_cpu_dispatch.h>
#include <ATen/ops/unfold_cpu_dispatch.h>
#include <ATen/ops/view_as_complex_cpu_dispatch.h>
#include <ATen/ops/view_as_real_cpu_dispatch.h>
#include <ATen/ops/view_cpu_dispatch.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <atomic>

#include "core.h"

namespace npu {
namespace {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

c10::Device chosen(std::optional<c10::Device> device) {
  return {kNpu, device && device->has_index() ? device->index() : current_device()};
}

void check_options(std::optional<at::Layout> layout, std::optional<bool> pin_memory) {
  TORCH_CHECK_NOT_IMPLEMENTED(c10::layout_or_default(layout) == at::kStrided,
                              "npu: only strided tensors are supported, not ", *layout);
  TORCH_CHECK(!c10::pinned_memory_or_default(pin_memory), "npu: only CPU tensors can be pinned");
}

// Whether fresh memory holds NaN, or the largest integer: torch.use_deterministic_algorithms().
// Integers of types that the NPU does not fill stay as they are.
bool fills_fresh_memory(at::ScalarType type) {
  const auto& context = at::globalContext();
  const bool foreign = type == at::kShort || at::isBarebonesUnsignedType(type);
  return !foreign && context.deterministicAlgorithms() &&
         context.deterministicFillUninitializedMemory();
}

at::Tensor filled(at::Tensor fresh) {
  if (fills_fresh_memory(fresh.scalar_type())) at::native::fill_empty_deterministic_(fresh);
  return fresh;
}

at::Tensor empty(at::IntArrayRef sizes, std::optional<at::ScalarType> dtype,
                 std::optional<at::Layout> layout, std::optional<at::Device> device,
                 std::optional<bool> pin_memory, std::optional<at::MemoryFormat> format) {
  check_options(layout, pin_memory);
  const c10::DeviceGuard guard(chosen(device));
  return filled(
      at::detail::empty_generic(sizes, allocator(), kKeys, c10::dtype_or_default(dtype), format));
}

at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides,
                         std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                         std::optional<at::Device> device, std::optional<bool> pin_memory) {
  check_options(layout, pin_memory);
  const c10::DeviceGuard guard(chosen(device));
  return filled(at::detail::empty_strided_generic(sizes, strides, allocator(), kKeys,
                                                  c10::dtype_or_default(dtype)));
}

// Enlarges the storage when the tensor reaches beyond its end.
void fit_storage(c10::TensorImpl* tensor) {
  if (tensor->numel() == 0) return;
  const size_t size = at::detail::computeStorageNbytes(
      tensor->sizes(), tensor->strides(), tensor->itemsize(), tensor->storage_offset());
  const auto& storage = tensor->unsafe_storage();
  if (size > storage.nbytes()) resize_storage(storage, size);
}

// Set and called while Python's lock is held by the caller or taken by the function itself.
std::function<void(const Sizes&, const Sizes&)> g_view;
std::atomic<bool> g_watched = false;

at::Tensor watched(const at::Tensor& self, at::Tensor made) {
  if (g_watched) g_view(self.sizes().vec(), made.sizes().vec());
  return made;
}

const at::Tensor& resize_(const at::Tensor& self, at::IntArrayRef sizes,
                          std::optional<at::MemoryFormat> format) {
  auto* tensor = self.unsafeGetTensorImpl();
  const auto before = static_cast<int64_t>(self.storage().nbytes());
  if (self.sizes() != sizes) {
    tensor->set_sizes_contiguous(sizes);
    fit_storage(tensor);
  }
  if (format) tensor->empty_tensor_restride(*format);
  if (fills_fresh_memory(self.scalar_type())) {
    at::native::fill_resize_deterministic_(self, before);
  }
  return self;
}

at::Tensor& set_storage(at::Tensor& self, at::Storage storage, int64_t offset,
                        at::IntArrayRef sizes, at::IntArrayRef strides) {
  at::native::checkSetStorage(self, storage, offset, sizes, strides);
  auto* tensor = self.unsafeGetTensorImpl();
  tensor->set_storage_offset(offset);
  if (strides.empty() && !sizes.empty()) {
    tensor->set_sizes_contiguous(sizes);
  } else {
    tensor->set_sizes_and_strides(sizes, strides);
  }
  fit_storage(tensor);
  return self;
}

at::Tensor& set_whole_storage(at::Tensor& self, at::Storage storage) {
  const auto count = static_cast<int64_t>(storage.nbytes() / self.itemsize());
  return set_storage(self, std::move(storage), 0, {count}, {});
}

at::Tensor& set_tensor(at::Tensor& self, const at::Tensor& source) {
  if (self.unsafeGetTensorImpl() != source.unsafeGetTensorImpl()) {
    set_storage(self, source.storage(), source.storage_offset(), source.sizes(), source.strides());
  }
  return self;
}

at::Tensor& set_empty(at::Tensor& self) {
  const c10::Storage storage(c10::Storage::use_byte_size_t(), 0,
                             allocate_on(self.device().index(), 0), allocator(), true);
  return set_storage(self, storage, 0, {0}, {});
}

// Without this, module.to("npu") would replace parameters instead of their data, and break tied
// weights and optimizers.
bool has_compatible_shallow_copy_type(const at::Tensor& a, const at::Tensor& b) {
  const auto fits = [](const at::Tensor& t) {
    return t.layout() == at::kStrided && (t.is_cpu() || t.is_privateuseone());
  };
  return fits(a) && fits(b);
}

// A tensor of torch.func: what transforms it, batches or differentiates, knows no op of the NPU.
bool is_transformed(const at::Tensor& x) {
  return x.key_set().has_any(c10::DispatchKeySet(
      {c10::DispatchKey::FuncTorchBatched, c10::DispatchKey::FuncTorchGradWrapper}));
}

bool is_attention_operand(const at::Tensor& x, const at::Tensor& query) {
  const auto dtype = x.scalar_type();
  return x.dim() == 4 && x.numel() > 0 && dtype == query.scalar_type() &&
         x.size(3) == query.size(3) && !is_transformed(x) &&
         (dtype == at::kFloat || dtype == at::kHalf || dtype == at::kBFloat16);
}

// Attention as one op with a gradient of its own; else as its defining products: with dropout, a
// mask that wants a gradient, or operands that the op table's row does not take.
int64_t attention_choice(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                         const std::optional<at::Tensor>& mask, double dropout_p, bool is_causal,
                         std::optional<double>, bool enable_gqa) {
  const bool masked = mask && mask->defined();
  const bool whole =
      dropout_p == 0.0 && is_attention_operand(query, query) && is_attention_operand(key, query) &&
      is_attention_operand(value, query) && query.size(0) == key.size(0) &&
      key.size(0) == value.size(0) && key.size(1) == value.size(1) &&
      key.size(2) == value.size(2) &&
      (key.size(1) == query.size(1) || (enable_gqa && query.size(1) % key.size(1) == 0)) &&
      !(masked && (is_causal || mask->requires_grad() || is_transformed(*mask)));
  return static_cast<int64_t>(whole ? at::SDPBackend::overrideable : at::SDPBackend::math);
}

// The NPU takes a truth value to be 0 or 1; bytes may be anything.
at::Tensor view_dtype(const at::Tensor& self, at::ScalarType dtype) {
  TORCH_CHECK_NOT_IMPLEMENTED(dtype != at::kBool || self.scalar_type() == at::kBool,
                              "npu: view of ", self.scalar_type(),
                              " as bool: bytes other than 0 and 1 are no truth values; use x != 0");
  return at::native::view_dtype(self, dtype);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_has_compatible_shallow_copy_type", has_compatible_shallow_copy_type);
  m.impl("record_stream", [](at::Tensor&, c10::Stream) {});
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
  m.impl("resize_", resize_);
  m.impl("as_strided", [](const at::Tensor& self, at::IntArrayRef size, at::IntArrayRef stride,
                          std::optional<int64_t> offset) {
    return watched(self, at::cpu::as_strided(self, size, stride, offset));
  });
  m.impl("view", [](const at::Tensor& self, at::IntArrayRef size) {
    return watched(self, at::cpu::view(self, size));
  });
  m.impl("view.dtype", view_dtype);
  m.impl("_reshape_alias",
         [](const at::Tensor& self, at::IntArrayRef size, at::IntArrayRef stride) {
           return watched(self, at::cpu::_reshape_alias(self, size, stride));
         });
  m.impl("unfold", TORCH_FN(at::cpu::unfold));
  m.impl("view_as_real", TORCH_FN(at::cpu::view_as_real));
  m.impl("view_as_complex", TORCH_FN(at::cpu::view_as_complex));
  m.impl("set_", set_empty);
  m.impl("set_.source_Storage", set_whole_storage);
  m.impl("set_.source_Tensor", set_tensor);
  m.impl("set_.source_Storage_storage_offset", set_storage);
}

enum class Kind { kSparse, kNested, kQuantized };

template <Kind kind>
void not_dense(const c10::OperatorHandle& op, torch::jit::Stack*) {
  constexpr const char* kNames[] = {"sparse", "nested", "quantized"};
  TORCH_CHECK_NOT_IMPLEMENTED(
      false, "npu: ", op.schema().name(), " does not run on the NPU: it makes or takes a ",
      kNames[static_cast<int>(kind)], " tensor, and those are on the CPU alone");
}

TORCH_LIBRARY_IMPL(_, SparsePrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&not_dense<Kind::kSparse>>());
}
TORCH_LIBRARY_IMPL(_, NestedTensorPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&not_dense<Kind::kNested>>());
}
TORCH_LIBRARY_IMPL(_, QuantizedPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&not_dense<Kind::kQuantized>>());
}

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

// torch's own lists of which op computes in which type under autocast.
TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
#define NPU_LOWER_PRECISION(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define NPU_FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define NPU_FP32_DTYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define NPU_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  AT_FORALL_LOWER_PRECISION_FP(NPU_LOWER_PRECISION)
  AT_FORALL_FP32(NPU_FP32)
  AT_FORALL_FP32_SET_OPT_DTYPE(NPU_FP32_DTYPE)
  using namespace at;  // the macro names types without their namespace
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
  AT_FORALL_PROMOTE(NPU_PROMOTE)
}

}  // namespace

void watch_views(std::function<void(const Sizes&, const Sizes&)> view) {
  const bool wanted(view);
  if (wanted) g_view = std::move(view);  // the former one may still be running: never emptied
  g_watched = wanted;
}

}  // namespace npu

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &npu::attention_choice)
}
