// SPDX-License-Identifier: Apache-2.0
#include "worker/programs/table.hpp"

#include <ATen/AccumulateType.h>
#include <ATen/native/layer_norm.h>
#include <ATen/ops/add.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/div.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/sum.h>

#include <cmath>
#include <utility>

namespace plateau {

namespace {

using arguments = std::span<at::Tensor const>;
using tensors = std::vector<at::Tensor>;
using call = std::function<void()>;

constexpr double epsilon = 1e-5; // LayerNorm's, as in the Python twin

at::Tensor rows(at::Tensor const& t) { return t.view({-1, t.size(-1)}); }

op linear(std::string name, std::vector<std::size_t> in, std::size_t out) {
  return {.name = std::move(name),
          .in = std::move(in),
          .out = out,
          .eager = [](arguments a) { return at::linear(a[0], a[1], a[2]); },
          .bind = [](tensors a, at::Tensor result) -> call {
            return [x = rows(a[0]), weight = a[1].t(), bias = a[2], y = rows(result)]() mutable {
              at::addmm_out(y, bias, x, weight);
            };
          }};
}

op gelu(std::size_t in, std::size_t out) {
  return {.name = "gelu",
          .in = {in},
          .out = out,
          .eager = [](arguments a) { return at::gelu(a[0]); },
          .bind = [](tensors a, at::Tensor result) -> call {
            return [x = a[0], y = std::move(result)]() mutable { at::gelu_out(y, x); };
          }};
}

op residual(std::size_t in, std::size_t skipped, std::size_t out, bool in_place) {
  op made{.name = "residual",
          .in = {in, skipped},
          .out = out,
          .eager = [](arguments a) { return at::add(a[0], a[1]); },
          .bind = [](tensors a, at::Tensor result) -> call {
            return [x = a[0], skip = a[1], y = std::move(result)]() mutable { at::add_out(y, x, skip); };
          }};
  if (in_place) made.eager = [](arguments a) { return a[0].add_(a[1]); };
  return made;
}

// The statistics that LayerNorm's kernel writes: CUDA's needs room for them, the CPU's does without.
struct statistics {
  at::Tensor mean, deviation;
  statistics(std::int64_t rows, at::Tensor const& x) {
    if (x.is_cpu()) return;
    mean = at::empty({rows}, x.options().dtype(at::toAccumulateType(x.scalar_type(), x.device().type())));
    deviation = at::empty_like(mean);
  }
};

// at::layer_norm has no out form that does not allocate; its kernel has.
op layer_norm(std::vector<std::size_t> in, std::size_t out) {
  return {.name = "layer_norm",
          .in = std::move(in),
          .out = out,
          .eager = [](arguments a) { return at::layer_norm(a[0], a[1].sizes(), a[1], a[2], epsilon); },
          .bind = [](tensors a, at::Tensor result) -> call {
            auto const features = a[1].numel(), rows = a[0].numel() / features;
            return [=, x = a[0], weight = a[1], bias = a[2], y = std::move(result),
                    aside = statistics(rows, a[0])]() mutable {
              at::native::LayerNormKernel(x.device().type(), x, weight, bias, rows, features, epsilon, &y,
                                          aside.mean.defined() ? &aside.mean : nullptr,
                                          aside.mean.defined() ? &aside.deviation : nullptr);
            };
          }};
}

// at::mean_out allocates; a sum and a quotient of it do not.
op mean_over_sequence(std::size_t in, std::size_t out) {
  return {.name = "mean",
          .in = {in},
          .out = out,
          .eager = [](arguments a) { return at::mean(a[0], 1); },
          .bind = [](tensors a, at::Tensor result) -> call {
            auto count = at::full({}, a[0].size(1), a[0].options());
            return [x = a[0], count = std::move(count), y = std::move(result)]() mutable {
              at::sum_out(y, x, 1);
              at::div_out(y, y, count);
            };
          }};
}

op scores(std::size_t in, std::size_t out) {
  return {.name = "scores",
          .in = {in},
          .out = out,
          .eager = [](arguments a) { return at::matmul(a[0], a[0].t()); },
          .bind = [](tensors a, at::Tensor result) -> call {
            return [p = a[0], transposed = a[0].t(), y = std::move(result)]() mutable { at::mm_out(y, p, transposed); };
          }};
}

} // namespace

program make_encoder_block(job const& j) {
  auto const hidden = j.hidden, inner = 4 * hidden;
  std::vector<std::int64_t> const narrow{j.batch, j.seq_len, hidden}, wide{j.batch, j.seq_len, inner};
  // Every linear keeps its input's scale, so that float16 stays in its range at any size.
  auto const by_inputs = [](std::int64_t n) {
    return distribution{.deviation = 1 / std::sqrt(static_cast<double>(n))};
  };
  distribution const small{.deviation = 0.02}, near_one{.mean = 1, .deviation = 0.02};

  enum : std::size_t { x, w1, b1, w2, b2, norm_w, norm_b, spread, bent, joined, summed, normed, pooled, score };
  program p{.name = "encoder_block",
            .values = {{"x", narrow, value_role::input},
                       {"fc1.weight", {inner, hidden}, value_role::weight, by_inputs(hidden)},
                       {"fc1.bias", {inner}, value_role::weight, small},
                       {"fc2.weight", {hidden, inner}, value_role::weight, by_inputs(inner)},
                       {"fc2.bias", {hidden}, value_role::weight, small},
                       {"norm.weight", {hidden}, value_role::weight, near_one},
                       {"norm.bias", {hidden}, value_role::weight, small},
                       {"fc1", wide},
                       {"gelu", wide},
                       {"fc2", narrow},
                       {"residual", narrow},
                       {"layer_norm", narrow},
                       {"mean", {j.batch, hidden}},
                       {"scores", {j.batch, j.batch}, value_role::output}},
            .ops = {linear("fc1", {x, w1, b1}, spread), gelu(spread, bent), linear("fc2", {bent, w2, b2}, joined),
                    residual(joined, x, summed, j.use_inplace_residual), layer_norm({summed, norm_w, norm_b}, normed),
                    mean_over_sequence(normed, pooled), scores(pooled, score)}};
  if (j.use_inplace_residual) p.values[summed].alias_of = joined;
  return p;
}

} // namespace plateau
