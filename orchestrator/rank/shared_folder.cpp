// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/rank/shared_folder.hpp"

#include "orchestrator/rank/agreement.hpp"
#include "orchestrator/store/durable.hpp"
#include "orchestrator/store/raw_result.hpp"
#include "schemas/host.hpp"
#include "schemas/json.hpp"

#include <chrono>
#include <exception>
#include <system_error>
#include <unistd.h>

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
  auto nonce = new_nonce();
  auto const agreed = json::parse(decided_by_rank_0(
      ranks_,
      [&] {
        auto const id = asked_for && named_by_its_run ? asked_for->filename().string() : new_run_id(job_name);
        auto const path = std::filesystem::absolute(asked_for.value_or(std::filesystem::path("runs") / id));
        folder_ = new_folder(path);
        made_ = true;
        write_durably(path / nonce_name, nonce);
        return json{{"run_id", id}, {"path", path.string()}, {"nonce", nonce}}.dump();
      },
      "making the run folder"));
  run_id_ = agreed["run_id"];

  // Only one of the ranks that share another folder can make it; the others look again once it is made.
  std::filesystem::path const path = agreed["path"].get<std::string>();
  nonce = agreed["nonce"];
  bool const shares = ranks_.rank() == 0 || holds(path / nonce_name, nonce);
  std::string complaint;
  if (ranks_.rank() != 0) complaint = shares ? take(path) : make_own(path, nonce);
  for (auto const answer : ranks_.all_gather(shares ? 1 : 0, "looking for the run folder"))
    shares_.push_back(answer != 0);
  if (!complaint.empty() && holds(path / host_nonce_name, nonce)) complaint = take(path);
  auto const complaints = ranks_.all_gather(complaint, "taking the run folder");
  std::error_code ignored;
  if (made_) std::filesystem::remove(path / (shares ? nonce_name : host_nonce_name), ignored);
  for (auto const& each : complaints)
    if (!each.empty()) throw refused(each);
}

std::string shared_folder::take(std::filesystem::path const& path) {
  folder_ = run_folder{path};
  return "";
}

// Why the folder could not be made, or nothing.
std::string shared_folder::make_own(std::filesystem::path const& path, std::string const& nonce) {
  try {
    folder_ = new_folder(path);
    made_ = true;
    write_durably(path / host_nonce_name, nonce);
    return "";
  } catch (std::exception const& e) {
    return "rank " + std::to_string(ranks_.rank()) + " on " + host_name() + ": " + e.what();
  }
}

std::string shared_folder::gather(case_id const& id, std::vector<std::uint8_t> const& mine) {
  auto const what = id.text() + ": gathering the results";
  std::string complaint;
  bool gathered = false;
  for (int rank = 1; rank < ranks_.size(); ++rank) {
    if (shares_[static_cast<std::size_t>(rank)]) continue;
    gathered = true;
    if (ranks_.rank() == rank) ranks_.send(mine, 0, what.c_str());
    if (ranks_.rank() != 0) continue;
    auto const bytes = ranks_.receive(rank, what.c_str());
    try {
      if (!bytes.empty()) beating(ranks_, [&] { write_raw_result(folder_, id, rank, bytes); });
    } catch (std::exception const& e) {
      complaint = "rank 0 cannot keep the result of rank " + std::to_string(rank) + ": " + e.what();
    }
  }
  return gathered ? ranks_.broadcast(complaint, what.c_str()) : "";
}

void shared_folder::clean_up() {
  std::error_code ignored;
  if (made_) std::filesystem::remove_all(folder_.path, ignored);
}

} // namespace plateau
