// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/store/raw_result.hpp"

#include "orchestrator/store/durable.hpp"
#include "schemas/codec.hpp"
#include "tests/support/synthetic_run.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <random>

namespace plateau {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

struct raw_result : testing::Test {
  scratch_folder scratch;
  run_folder folder{scratch.path / "run"};
  job run = synthetic_job();
  run_info info = synthetic_info(run, 2);
  case_result result = synthetic_result(info, run, {"eager", 2, 0}, 1);
  fs::path path = folder.raw_result(result.id, result.rank);

  raw_result() { store(folder, result); }

  std::string refusal() {
    try {
      read_raw_result(path);
    } catch (format_error const& e) {
      return e.what();
    }
    return "not refused";
  }
};

TEST_F(raw_result, reads_back_what_was_written) {
  EXPECT_EQ(path, scratch.path / "run/cases/eager.c2/rank-00001.cbor");
  EXPECT_EQ(encode(read_raw_result(path)), encode(result));
}

TEST_F(raw_result, of_a_later_attempt_is_a_file_beside_it) {
  result.attempt = 2;
  store(folder, result);
  auto const later = folder.raw_result(result.id, result.rank, 2);
  EXPECT_EQ(later.filename(), "rank-00001.attempt-2.cbor");
  EXPECT_EQ(read_raw_result(later).attempt, 2);
  EXPECT_EQ(read_raw_result(path).attempt, 1);
}

TEST_F(raw_result, is_refused_when_it_is_of_another_attempt_than_its_name_says) {
  fs::rename(path, folder.raw_result(result.id, result.rank, 2));
  path = folder.raw_result(result.id, result.rank, 2);
  EXPECT_THAT(refusal(), HasSubstr("not what its name says"));
}

TEST_F(raw_result, leaves_no_temporary_file) {
  EXPECT_EQ(std::distance(fs::directory_iterator(path.parent_path()), fs::directory_iterator()), 1);
}

TEST_F(raw_result, is_refused_when_truncated_anywhere) {
  auto const whole = read_file(path);
  for (std::size_t size = 0; size < whole.size(); size = size < 40 ? size + 1 : size + 97) {
    write_durably(path, std::span(whole).first(size));
    EXPECT_THAT(refusal(), HasSubstr(path.string() + ": is truncated")) << size;
  }
}

TEST_F(raw_result, is_refused_when_any_bit_is_flipped) {
  auto const whole = read_file(path);
  std::mt19937 random(1);
  for (int i = 0; i < 500; ++i) {
    auto damaged = whole;
    auto const bit = i < 128 ? (whole.size() - 16) * 8 + static_cast<std::size_t>(i) : random() % (whole.size() * 8);
    damaged[bit / 8] = static_cast<std::uint8_t>(damaged[bit / 8] ^ 1u << bit % 8);
    write_durably(path, damaged);
    EXPECT_THAT(refusal(), HasSubstr(path.string() + ": is ")) << bit;
  }
}

TEST_F(raw_result, is_refused_with_a_sentence_for_each_fault) {
  struct fault {
    char const* says;
    std::function<void()> plant;
  };
  auto const store_document = [&](auto&& change) {
    auto document = encode(result);
    change(document);
    write_raw_result(folder, result.id, result.rank, to_cbor(document));
  };
  std::vector<fault> const faults{
      {"from a newer plateau; this one reads up to plateau.case_result/1.1",
       [&] { store_document([](json& d) { d["schema"] = "plateau.case_result/2.0"; }); }},
      {"holds case eager.c2 of rank 0, not what its name says",
       [&] { store_document([](json& d) { d["rank"] = 0; }); }},
      {"holds case arena.c2 of rank 1, not what its name says",
       [&] { store_document([](json& d) { d["case"]["mode"] = "arena"; }); }},
      {"/measured: present exactly when the case passed",
       [&] { store_document([](json& d) { d.erase("measured"); }); }},
      {"not valid CBOR", [&] { write_raw_result(folder, result.id, result.rank, std::vector<std::uint8_t>{0xa1}); }},
      {"does not end in a trailer", [&] { write_durably(path, "no raw result, but long enough for one"); }},
  };
  for (auto const& f : faults) {
    f.plant();
    EXPECT_THAT(refusal(), HasSubstr(f.says));
    EXPECT_THAT(refusal(), HasSubstr(path.string()));
  }
}

TEST_F(raw_result, of_a_newer_minor_version_is_read) {
  auto document = encode(result);
  document["schema"] = "plateau.case_result/1.7";
  document["something_new"] = 1;
  write_raw_result(folder, result.id, result.rank, to_cbor(document));
  EXPECT_EQ(read_raw_result(path).rank, 1);
}

TEST_F(raw_result, that_is_not_there_is_an_input_error_with_its_path) {
  fs::remove(path);
  EXPECT_THROW(read_raw_result(path), input_error);
}

} // namespace
} // namespace plateau
