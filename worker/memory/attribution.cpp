// SPDX-License-Identifier: Apache-2.0
#include "worker/memory/attribution.hpp"

#include <ATen/record_function.h>
#include <c10/core/Allocator.h>
#include <c10/util/Exception.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace plateau {
namespace {

using op_path = std::shared_ptr<std::string const>;

/// An operator under the operators it was called from.
struct op_node {
  std::string name; ///< a copy: the name of a scope that is no operator's lives no longer than the scope
  op_path path;
  op_node* parent = nullptr;
  std::vector<op_node*> children;
};

op_path const& no_operator() {
  static auto const empty = std::make_shared<std::string const>();
  return empty;
}

std::atomic<bool> tracking{false};

/// What was booked, and who allocated the blocks that are live. One lock for all threads: nothing is timed while this
/// is in use.
struct book {
  std::mutex mutex;
  std::map<std::string, op_events> by_path;
  std::unordered_map<void const*, op_path> allocated_by;
};

book& the_book() {
  static book only;
  return only;
}

/// What Torch's device allocators tell the profiler of an event's thread, on that thread, while they hold their lock:
/// the block and its bytes after rounding, as they count them; a free when it is asked for, as it is counted, though
/// the block may be in use on another stream until later.
class device_events final : public c10::MemoryReportingInfoBase {
public:
  void reportMemoryUsage(void* block, std::int64_t bytes, std::size_t, std::size_t, c10::Device where) override {
    if (where.is_cpu()) return; // the measured allocator books its own
    bytes > 0 ? book_allocation(block, bytes) : book_free(block, -bytes);
  }
  bool memoryProfilingEnabled() const override { return true; }
};

} // namespace

struct op_tracker::table {
  std::deque<op_node> nodes{{{}, no_operator(), nullptr, {}}}; ///< the first is the root, for no operator
  op_node* current = &nodes.front();
  c10::DebugInfoGuard events{c10::DebugInfoKind::PROFILER_STATE, std::make_shared<device_events>()};

  void enter(std::string_view name);
  void leave() {
    if (current->parent) current = current->parent;
  }
};

namespace {

thread_local op_tracker::table* own_table = nullptr;

op_path const& path_of_this_thread() { return own_table ? own_table->current->path : no_operator(); }

std::unique_ptr<at::ObserverContext> enter_op(at::RecordFunction const& op) {
  own_table->enter(op.name());
  return nullptr;
}

void leave_op(at::RecordFunction const&, at::ObserverContext*) { own_table->leave(); }

} // namespace

void op_tracker::table::enter(std::string_view name) {
  auto const known =
      std::find_if(current->children.begin(), current->children.end(), [&](op_node* n) { return n->name == name; });
  if (known != current->children.end()) {
    current = *known;
    return;
  }
  op_node& added = nodes.emplace_back();
  added.name = name;
  added.path =
      std::make_shared<std::string const>(current->path->empty() ? added.name : *current->path + "/" + added.name);
  added.parent = current;
  current->children.push_back(&added);
  current = &added;
}

void start_tracking() {
  auto& b = the_book();
  std::lock_guard const lock(b.mutex);
  b.by_path.clear();
  b.allocated_by.clear();
  tracking.store(true);
}

std::vector<op_events> stop_tracking() {
  tracking.store(false);
  auto& b = the_book();
  std::lock_guard const lock(b.mutex);
  std::vector<op_events> ops;
  for (auto& [path, events] : b.by_path) {
    events.op = path;
    ops.push_back(std::move(events));
  }
  b.by_path.clear();
  b.allocated_by.clear();
  return ops;
}

op_tracker::op_tracker() : table_(std::make_unique<table>()) {
  TORCH_CHECK(!own_table, "this thread has an op_tracker already");
  own_table = table_.get();
  handle_ = at::addThreadLocalCallback(
      at::RecordFunctionCallback(&enter_op, &leave_op).scopes({at::RecordScope::FUNCTION}).needsInputs(false));
}

op_tracker::~op_tracker() {
  at::removeCallback(handle_);
  own_table = nullptr;
}

void book_allocation(void const* block, std::int64_t bytes) {
  if (!tracking.load(std::memory_order_relaxed)) return;
  auto& b = the_book();
  std::lock_guard const lock(b.mutex);
  auto const& path = path_of_this_thread();
  auto& events = b.by_path[*path];
  ++events.allocation_events;
  events.allocated_bytes += bytes;
  b.allocated_by[block] = path;
}

void book_free(void const* block, std::int64_t bytes) {
  if (!tracking.load(std::memory_order_relaxed)) return;
  auto& b = the_book();
  std::lock_guard const lock(b.mutex);
  auto const owner = b.allocated_by.extract(block);
  auto& events = b.by_path[owner.empty() ? std::string() : *owner.mapped()];
  ++events.free_events;
  events.freed_bytes += bytes;
}

} // namespace plateau
