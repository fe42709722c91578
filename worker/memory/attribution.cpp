// SPDX-License-Identifier: Apache-2.0
#include "worker/memory/attribution.hpp"

#include <ATen/record_function.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace plateau {
namespace {

/// Events of one path of operators. Written by one thread, or by several on "".
struct tally {
  std::atomic<std::int64_t> allocation_events{0}, allocated_bytes{0}, free_events{0}, freed_bytes{0};
};

void add_to(op_events& sum, tally const& part) {
  sum.allocation_events += part.allocation_events;
  sum.allocated_bytes += part.allocated_bytes;
  sum.free_events += part.free_events;
  sum.freed_bytes += part.freed_bytes;
}

void clear(tally& t) {
  t.allocation_events = 0;
  t.allocated_bytes = 0;
  t.free_events = 0;
  t.freed_bytes = 0;
}

/// An operator under the operators it was called from.
struct op_node {
  std::string name; ///< a copy: the name of a scope that is no operator's lives no longer than the scope
  op_node* parent = nullptr;
  std::vector<op_node*> children;
  tally events;
};

std::string path_of(op_node const& node) {
  if (!node.parent) return {};
  std::string const above = path_of(*node.parent);
  return above.empty() ? node.name : above + "/" + node.name;
}

std::atomic<bool> tracking{false};
tally events_of_other_threads;

} // namespace

struct op_tracker::table {
  std::deque<op_node> nodes = std::deque<op_node>(1); ///< the first is the root, for no operator
  op_node* current = &nodes.front();

  void enter(std::string_view name);
  void leave() {
    if (current->parent) current = current->parent;
  }
};

namespace {

thread_local op_tracker::table* own_table = nullptr;

/// All trackers alive, and what the others had booked when they went.
struct registry {
  std::mutex mutex;
  std::vector<op_tracker::table*> alive;
  std::map<std::string, op_events> gone;
};

registry& trackers() {
  static registry all;
  return all;
}

void collect(op_tracker::table const& from, std::map<std::string, op_events>& into) {
  for (op_node const& node : from.nodes) add_to(into[path_of(node)], node.events);
}

bool has_events(op_events const& x) { return x.allocation_events != 0 || x.free_events != 0; }

tally& tally_of_this_thread() { return own_table ? own_table->current->events : events_of_other_threads; }

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
  added.parent = current;
  current->children.push_back(&added);
  current = &added;
}

void start_tracking() {
  std::lock_guard const lock(trackers().mutex);
  trackers().gone.clear();
  clear(events_of_other_threads);
  for (auto* const table : trackers().alive)
    for (op_node& node : table->nodes) clear(node.events);
  tracking.store(true);
}

std::vector<op_events> stop_tracking() {
  tracking.store(false);
  std::lock_guard const lock(trackers().mutex);
  auto by_path = std::move(trackers().gone);
  trackers().gone.clear();
  add_to(by_path[""], events_of_other_threads);
  for (auto const* const table : trackers().alive) collect(*table, by_path);

  std::vector<op_events> ops;
  for (auto& [path, events] : by_path) {
    if (!has_events(events)) continue;
    events.op = path;
    ops.push_back(std::move(events));
  }
  return ops;
}

op_tracker::op_tracker() : table_(std::make_unique<table>()) {
  TORCH_CHECK(!own_table, "this thread has an op_tracker already");
  {
    std::lock_guard const lock(trackers().mutex);
    trackers().alive.push_back(table_.get());
  }
  own_table = table_.get();
  handle_ = at::addThreadLocalCallback(
      at::RecordFunctionCallback(&enter_op, &leave_op).scopes({at::RecordScope::FUNCTION}).needsInputs(false));
}

op_tracker::~op_tracker() {
  at::removeCallback(handle_);
  own_table = nullptr;
  std::lock_guard const lock(trackers().mutex);
  std::erase(trackers().alive, table_.get());
  collect(*table_, trackers().gone);
}

void book_allocation(std::int64_t bytes) {
  if (!tracking.load(std::memory_order_relaxed)) return;
  tally& events = tally_of_this_thread();
  events.allocation_events.fetch_add(1, std::memory_order_relaxed);
  events.allocated_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

void book_free(std::int64_t bytes) {
  if (!tracking.load(std::memory_order_relaxed)) return;
  tally& events = tally_of_this_thread();
  events.free_events.fetch_add(1, std::memory_order_relaxed);
  events.freed_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

} // namespace plateau
