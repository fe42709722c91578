// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/rank/shared_folder.hpp"

#include "orchestrator/rank/agreement.hpp"
#include "orchestrator/store/durable.hpp"
#include "orchestrator/store/raw_result.hpp"
#include "schemas/host.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace plateau {

namespace {

// By these files in it the ranks recognise a folder as rank 0's, or as one that a rank of their host made.
constexpr auto nonce_name = ".nonce", host_nonce_name = ".nonce-host";

std::string new_nonce() {
  return std::to_string(getpid()) + "-" + std::to_string(std::chrono::steady_clock::now().time_since_epoch().count());
}

bool holds(std::filesystem::path const& file, std::string const& nonce) {
  try {
    return std::filesystem::exists(file) && read_text(file) == nonce;
  } catch (std::exception const&) {
    return false;
  }
}

run_folder new_folder(std::filesystem::path const& path) {
  try {
    return create_run_folder(path);
  } catch (std::filesystem::filesystem_error const& e) {
    throw input_error("cannot make the run folder " + path.string() + ": " + e.code().message() +
                      "; choose another one with -o");
  }
}

} // namespace

void shared_folder::make(std::optional<std::filesystem::path> const& asked_for, bool named_by_its_run,
                         std::string const& job_name) {
  auto const offered = decided_by_rank_0(
      ranks_,
      [&] {
        run_id_ = asked_for && named_by_its_run ? asked_for->filename().string() : new_run_id(job_name);
        auto const path = asked_for.value_or(std::filesystem::path("runs") / run_id_);
        auto const folder = new_folder(std::filesystem::absolute(path));
        made_ = true;
        return offer(folder).dump();
      },
      "making the run folder");
  settle(json::parse(offered), false);
}

void shared_folder::reopen(std::filesystem::path const& path) {
  auto const offered = decided_by_rank_0(
      ranks_,
      [&] {
        auto const folder = open_run_folder(path);
        run_id_ = read_run_info(folder).run_id;
        return offer({std::filesystem::canonical(folder.path)}).dump(); // `latest` may soon point to another run
      },
      "opening the run folder");
  settle(json::parse(offered), true);
}

// On rank 0: takes the folder, and gives what the other ranks have to know to find it.
json shared_folder::offer(run_folder folder) {
  folder_ = std::move(folder);
  lock_.emplace(folder_);
  auto const nonce = new_nonce();
  write_durably(folder_.path / nonce_name, nonce);
  return {{"run_id", run_id_}, {"path", folder_.path.string()}, {"nonce", nonce}};
}

void shared_folder::settle(json const& offered, bool resumed) {
  run_id_ = offered["run_id"];
  folder_.path = offered["path"].get<std::string>();
  std::string const nonce = offered["nonce"];
  bool const sees_it = ranks_.rank() == 0 || holds(folder_.path / nonce_name, nonce);
  std::string complaint = sees_it ? take_shared() : take_own(nonce, resumed);
  for (auto const answer : ranks_.all_gather(sees_it ? 1 : 0, "looking for the run folder"))
    shares_.push_back(answer != 0);
  // only one of the ranks that share another folder could make it; by now it is made
  if (!complaint.empty() && holds(folder_.path / host_nonce_name, nonce)) complaint = "";
  auto const complaints = ranks_.all_gather(complaint, "taking the run folder");
  std::error_code ignored;
  if (ranks_.rank() == 0) std::filesystem::remove(folder_.path / nonce_name, ignored);
  if (!sees_it && made_) std::filesystem::remove(folder_.path / host_nonce_name, ignored);
  for (std::size_t rank = 0; rank < complaints.size(); ++rank)
    if (!complaints[rank].empty()) throw refused("rank " + std::to_string(rank) + " " + complaints[rank]);
}

// Why this rank cannot write where rank 0 does, or nothing.
std::string shared_folder::take_shared() const {
  if (access(folder_.cases().c_str(), W_OK | X_OK) == 0) return "";
  return "on " + host_name() + ": cannot write into the run folder " + folder_.path.string() + ": " +
         std::generic_category().message(errno) + "; every rank keeps its results there";
}

// Why this rank can have no folder of its own, or nothing.
std::string shared_folder::take_own(std::string const& nonce, bool resumed) try {
  std::error_code ignored;
  if (resumed && std::filesystem::exists(folder_.run_json(), ignored)) {
    auto const there = read_run_info(folder_).run_id;
    if (there != run_id_) throw input_error(folder_.path.string() + ": is the folder of another run, " + there);
    return take_shared();
  }
  auto const folder = new_folder(folder_.path);
  made_ = true;
  write_durably(folder.path / host_nonce_name, nonce);
  return "";
} catch (std::exception const& e) {
  return "on " + host_name() + ": " + e.what();
}

void shared_folder::copy_to_others(run_info const& info) {
  if (std::ranges::find(shares_, false) == shares_.end()) return;
  std::string complaint;
  try {
    if (!shares(ranks_.rank())) write_down(folder_, info);
  } catch (std::exception const& e) {
    complaint = "rank " + std::to_string(ranks_.rank()) + " on " + host_name() + ": " + e.what();
  }
  for (auto const& each : ranks_.all_gather(complaint, "writing run.json"))
    if (!each.empty()) throw refused(each);
}

std::string shared_folder::gather(case_id const& id, std::vector<std::uint8_t> const& mine, std::int64_t attempt) {
  auto const what = id.text() + ": gathering the results";
  std::string complaint;
  bool gathered = false;
  for (int rank = 1; rank < ranks_.size(); ++rank) {
    if (shares(rank)) continue;
    gathered = true;
    if (ranks_.rank() == rank) ranks_.send(mine, 0, what.c_str());
    if (ranks_.rank() != 0) continue;
    auto const bytes = ranks_.receive(rank, what.c_str());
    try {
      if (!bytes.empty()) beating(ranks_, [&] { write_raw_result(folder_, id, rank, bytes, attempt); });
    } catch (std::exception const& e) {
      complaint = "rank 0 cannot keep the result of rank " + std::to_string(rank) + ": " + e.what();
    }
  }
  return gathered ? ranks_.broadcast(complaint, what.c_str()) : "";
}

void shared_folder::drop_older(case_id const& id, std::int64_t attempt) {
  remove_older_results(folder_, id, ranks_.rank(), attempt);
  for (int rank = 1; ranks_.rank() == 0 && rank < ranks_.size(); ++rank)
    if (!shares(rank)) remove_older_results(folder_, id, rank, attempt);
}

void shared_folder::clean_up() {
  std::error_code ignored;
  if (made_) std::filesystem::remove_all(folder_.path, ignored);
}

} // namespace plateau
