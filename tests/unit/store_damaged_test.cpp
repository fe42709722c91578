// SPDX-License-Identifier: Apache-2.0
// Every file of a run, cut short, with a bit turned over, of an older and of a newer version: refused or left out, each
// with a sentence.
#include "orchestrator/store/assemble.hpp"
#include "orchestrator/store/check_run_file.hpp"
#include "orchestrator/store/check_stored.hpp"
#include "orchestrator/store/durable.hpp"
#include "orchestrator/store/stored_json.hpp"
#include "tests/support/synthetic_run.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <random>
#include <string>
#include <vector>

namespace plateau {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;
namespace fs = std::filesystem;
using content = std::vector<std::uint8_t>;

/// A small run of two ranks and one case, assembled; the path of each of its files by its name.
struct small_run {
  scratch_folder scratch;
  job run = small_job();
  run_folder folder = synthetic_folder(scratch.path / "run", run, 2);

  small_run() {
    write_durably(folder.job_json(), to_json(run).dump(2) + "\n");
    write_outcome(folder, {0, "", "2026-03-04T10:20:00Z"});
    assemble(folder);
  }

  fs::path file(std::string const& name) const {
    return name == "raw result" ? folder.raw_result({"eager", 2, 0}, 1) : folder.path / name;
  }

  static job small_job() {
    auto j = synthetic_job();
    j.requests_per_worker = 3;
    j.concurrency_levels = {2};
    j.modes = {"eager"};
    return j;
  }
};

struct damaged : small_run, testing::TestWithParam<char const*> {
  fs::path path = file(GetParam());
  content whole = read_file(path);

  // Not durably: this is done thousands of times.
  void write_file(std::span<std::uint8_t const> bytes) const {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<char const*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }

  // A JSON text may say the same in another way, as 1E-5 for 1e-5.
  bool says_the_same(content const& changed) const {
    auto const document = json::parse(changed, nullptr, false);
    return !document.is_discarded() && document.dump() == json::parse(whole).dump();
  }

  // What is wrong with the file alone, and with the folder that it is in.
  std::vector<std::string> faults() const { return check_stored(path).faults; }
  std::vector<std::string> faults_of_folder() const { return check_stored(folder.path).faults; }
};

/// The files that a run folder may lack. run.json is what makes it one.
struct dispensable : damaged {};

std::string name_of_file(testing::TestParamInfo<char const*> const& p) {
  std::string name = p.param;
  std::ranges::replace_if(
      name, [](char c) { return c == '.' || c == ' '; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(files, damaged,
                         testing::Values("run.json", "outcome.json", "summary.json", "raw result", "run.h5"),
                         name_of_file);
INSTANTIATE_TEST_SUITE_P(files, dispensable, testing::Values("outcome.json", "summary.json", "raw result", "run.h5"),
                         name_of_file);

TEST_P(damaged, a_whole_one_has_no_fault) {
  EXPECT_THAT(faults(), IsEmpty());
  EXPECT_THAT(faults_of_folder(), IsEmpty());
}

// run.h5 and its trailer's absence is the one cut that leaves all of the content: it is called unchecked.
TEST_P(damaged, one_that_is_cut_short_anywhere_is_refused_with_a_sentence) {
  std::mt19937 random(1);
  auto const small = whole.size() < 8'000;
  for (std::size_t i = 0; i < (small ? whole.size() - 1 : 400); ++i) {
    auto const size = small || i < 100 ? i : i < 200 ? whole.size() - 2 - (i - 100) : random() % (whole.size() - 1);
    if (GetParam() == std::string("run.h5") && size == whole.size() - 16) continue;
    write_file(std::span(whole).first(size));
    ASSERT_THAT(faults(), ElementsAre(StartsWith(path.string() + ": "))) << size << " of " << whole.size();
  }
  EXPECT_THAT(faults_of_folder(), testing::Contains(StartsWith(path.string() + ": ")));
}

TEST_P(damaged, one_with_any_bit_turned_over_is_refused_with_a_sentence) {
  std::mt19937 random(2);
  auto const bits = whole.size() * 8;
  auto const few = bits < 10'000;
  for (std::size_t i = 0; i < (few ? bits : 1200); ++i) {
    auto const bit = few ? i : i < 600 ? i : i < 800 ? bits - 1 - (i - 600) : random() % bits;
    auto changed = whole;
    changed[bit / 8] = static_cast<std::uint8_t>(changed[bit / 8] ^ 1u << bit % 8);
    if (says_the_same(changed)) continue;
    write_file(changed);
    ASSERT_THAT(faults(), ElementsAre(StartsWith(path.string() + ": "))) << bit;
  }
  EXPECT_THAT(faults_of_folder(), testing::Contains(StartsWith(path.string() + ": ")));
}

TEST_P(damaged, one_that_is_empty_or_something_else_is_refused) {
  for (auto const* text :
       {"", "{}", "[]", "null", "\"\"", "what?", "{\"schema\": 1}", "{\"schema\": \"plateau.job/1.0\"}", "PLRF",
        "\x89HDF\r\n\x1a\n", "PLRR000000000000", "\xff\xfe{\0}\0"}) {
    write_durably(path, text);
    EXPECT_THAT(faults(), ElementsAre(StartsWith(path.string() + ": "))) << text;
  }
  write_durably(path, std::string(100'000, '['));
  EXPECT_THAT(faults(), ElementsAre(StartsWith(path.string() + ": ")));
}

TEST_P(dispensable, a_folder_without_it_is_no_damaged_one) {
  fs::remove(path);
  EXPECT_THAT(faults_of_folder(), IsEmpty());
}

// Versions.

struct other_version {
  char const *version, *says; ///< nothing: it is read
};

constexpr std::array other_versions{
    other_version{"2.0", "from a newer plateau; this one reads up to"},
    other_version{"99.1", "from a newer plateau; this one reads up to"},
    other_version{"0.9", "needs plateau."},
    other_version{"0", "needs plateau."},
    other_version{"-1.0", "needs plateau."},
    other_version{"one", "needs plateau."},
    other_version{"99999999999999999999.0", "needs plateau."},
    other_version{"", "needs plateau."},
    other_version{"1.7", nullptr},
};

struct of_another_version : damaged {
  // Stores the file as a plateau of that version would, checksum included.
  void store_as(std::string const& version) const {
    if (path.extension() == ".json") {
      auto document = json::parse(whole);
      document["schema"] = format_name() + "/" + version;
      write_stored_json(path, document);
    } else {
      auto document = encode(read_raw_result(path));
      document["schema"] = format_name() + "/" + version;
      write_raw_result(folder, {"eager", 2, 0}, 1, to_cbor(document));
    }
  }

  std::string format_name() const {
    auto const name = path.filename().string();
    return name == "run.json"       ? "plateau.run"
           : name == "outcome.json" ? "plateau.outcome"
           : name == "summary.json" ? "plateau.summary"
                                    : "plateau.case_result";
  }
};

INSTANTIATE_TEST_SUITE_P(files, of_another_version,
                         testing::Values("run.json", "outcome.json", "summary.json", "raw result"), [](auto const& p) {
                           std::string name = p.param;
                           std::ranges::replace_if(
                               name, [](char c) { return c == '.' || c == ' '; }, '_');
                           return name;
                         });

TEST_P(of_another_version, a_newer_minor_one_is_read_and_others_are_refused_with_a_sentence) {
  for (auto const& other : other_versions) {
    write_file(whole);
    store_as(other.version);
    if (other.says == nullptr)
      EXPECT_THAT(faults(), IsEmpty()) << other.version;
    else
      EXPECT_THAT(faults(), ElementsAre(AllOf(StartsWith(path.string() + ": "), HasSubstr(other.says))))
          << other.version;
  }
}

// run.h5

struct run_h5 : small_run, testing::Test {
  fs::path path = folder.run_h5();
  std::map<std::string, h5::item> items = h5::read_items(path);

  std::vector<std::string> faults_with(std::string const& item, auto&& change) {
    auto changed = items;
    change(changed.at(item));
    return check_run_file_items(changed);
  }
};

TEST_F(run_h5, says_its_version_as_the_others_do) {
  for (auto const& other : other_versions) {
    auto const faults =
        faults_with("", [&](h5::item& root) { root.text_attributes["schema_version"] = other.version; });
    if (other.says == nullptr)
      EXPECT_THAT(faults, IsEmpty()) << other.version;
    else
      EXPECT_THAT(faults, ElementsAre(HasSubstr(other.says))) << other.version;
  }
}

TEST_F(run_h5, misses_each_of_its_items) {
  for (auto const& [path_in_file, unused] : items) {
    auto changed = items;
    changed.erase(path_in_file);
    auto const may_lack = [&](char const* end) { return path_in_file.ends_with(end); };
    if (may_lack("/thread") || may_lack("/request") || may_lack("/soak") || may_lack("/attribution") || may_lack("/op"))
      continue;
    EXPECT_THAT(check_run_file_items(changed), Not(IsEmpty())) << path_in_file;
  }
}

TEST_F(run_h5, has_each_dataset_in_the_shape_that_its_job_and_ranks_give) {
  for (auto const& [path_in_file, item] : items) {
    if (item.what == h5::item::kind::group || path_in_file.ends_with("/thread") || path_in_file.ends_with("/request"))
      continue;
    EXPECT_THAT(faults_with(path_in_file, [](h5::item& x) { x.size.push_back(1); }), Not(IsEmpty())) << path_in_file;
    EXPECT_THAT(faults_with(path_in_file, [](h5::item& x) { x.what = h5::item::kind::other; }), Not(IsEmpty()))
        << path_in_file;
  }
}

TEST_F(run_h5, says_what_is_wrong_and_where) {
  EXPECT_THAT(faults_with("eager.c2/latency_ns", [](h5::item& x) { x.size[2] = 4; }),
              ElementsAre("eager.c2/latency_ns is 2 x 2 x 4, and should be 2 x 2 x 3"));
  EXPECT_THAT(faults_with("eager.c2/rank",
                          [](h5::item& x) {
                            x.values = {1, 0};
                          }),
              ElementsAre("eager.c2/rank does not list ranks of the run in ascending order"));
  EXPECT_THAT(faults_with("eager.c2/rank", [](h5::item& x) { x.values = {0, 2}; }), SizeIs(1));
  EXPECT_THAT(faults_with("eager.c2", [](h5::item& x) { x.text_attributes["case_id"] = "arena.c2"; }),
              ElementsAre("eager.c2: the attribute case_id is not \"eager.c2\""));
  EXPECT_THAT(faults_with("job", [](h5::item& x) { x.text = "{\"hiden\": 1}"; }), ElementsAre(HasSubstr("/hiden")));
  EXPECT_THAT(faults_with("run", [](h5::item& x) { x.text = "{}"; }), ElementsAre("run names no ranks"));
}

TEST_F(run_h5, that_another_program_wrote_anew_is_unchecked_and_not_looked_into) {
  fs::resize_file(path, fs::file_size(path) - 16);
  auto const report = check_stored(path);
  EXPECT_THAT(report.faults, IsEmpty());
  EXPECT_EQ(report.what, "an HDF5 file, unchecked");
  EXPECT_THAT(report.remarks, ElementsAre(HasSubstr("unchecked: it has no checksum")));
}

// What readers make of damage.

TEST_F(run_h5, and_summary_are_made_again_without_a_raw_result_that_is_damaged_or_newer) {
  auto const raw = folder.raw_result({"eager", 2, 0}, 1);
  auto document = encode(read_raw_result(raw));
  document["schema"] = "plateau.case_result/2.0";
  write_raw_result(folder, {"eager", 2, 0}, 1, to_cbor(document));
  auto const out = assemble(folder);
  EXPECT_THAT(out.complaints, ElementsAre(AllOf(HasSubstr(raw.string() + ": is plateau.case_result/2.0, from a newer"),
                                                HasSubstr("; it is left out"))));
  EXPECT_EQ(out.summary["missing"], json::parse(R"([{"case_id": "eager.c2", "ranks": [1]}])"));
}

TEST_F(run_h5, is_not_made_from_a_damaged_run_json_or_outcome) {
  for (auto const& damaged_file : {folder.run_json(), folder.outcome_json()}) {
    auto const text = read_text(damaged_file);
    write_durably(damaged_file, text.substr(0, text.size() / 2));
    try {
      assemble(folder);
      ADD_FAILURE() << "assembled";
    } catch (format_error const& e) {
      EXPECT_THAT(e.what(), StartsWith(damaged_file.string() + ": is not JSON"));
    }
    write_durably(damaged_file, text);
  }
}

// The files of a folder against each other.

struct folder_of_a_run : small_run, testing::Test {
  std::vector<std::string> faults() const { return check_stored(folder.path).faults; }
};

TEST_F(folder_of_a_run, is_whole) {
  auto const report = check_stored(folder.path);
  EXPECT_EQ(report.what, "a run of 2 ranks, 2 of 2 results there, all whole");
  EXPECT_THAT(report.remarks, IsEmpty());
}

TEST_F(folder_of_a_run, that_was_not_assembled_says_how_to) {
  fs::remove(folder.run_h5());
  fs::remove(folder.summary_json());
  fs::remove(folder.raw_result({"eager", 2, 0}, 0));
  auto const report = check_stored(folder.path);
  EXPECT_EQ(report.what, "a run of 2 ranks, 1 of 2 results there, all whole");
  EXPECT_THAT(report.remarks,
              ElementsAre(HasSubstr("plateau assemble builds it"), HasSubstr("plateau assemble builds")));
}

TEST_F(folder_of_a_run, lists_every_fault_at_once) {
  for (std::int64_t rank = 0; rank < 2; ++rank) fs::resize_file(folder.raw_result({"eager", 2, 0}, rank), 100);
  fs::resize_file(folder.run_h5(), 1000);
  write_durably(folder.summary_json(), "{}");
  EXPECT_THAT(faults(), SizeIs(4));
}

TEST_F(folder_of_a_run, has_no_results_of_another_run_or_of_no_case) {
  auto info = synthetic_info(run, 2);
  store(folder, synthetic_result(info, run, {"arena", 2, 0}, 0));
  info.run_id = "20200101T000000Z-other-0000";
  store(folder, synthetic_result(info, run, {"eager", 2, 0}, 1));
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("is of no case, rank or attempt of this run"),
                                    HasSubstr("is a result of run 2020")));
}

TEST_F(folder_of_a_run, has_no_summary_or_run_file_of_another_run) {
  auto info = read_run_info(folder);
  info.run_id = "20200101T000000Z-other-0000";
  write_run_info(folder, info);
  EXPECT_THAT(faults(), testing::IsSupersetOf({HasSubstr("summary.json: is of run 20260304T101500Z-synthetic-7f3a"),
                                               HasSubstr("run.h5: is of run 20260304T101500Z-synthetic-7f3a")}));
}

TEST_F(folder_of_a_run, has_the_job_of_its_run_json) {
  auto const text = read_text(folder.job_json());
  for (std::size_t size = 0; size + 2 < text.size(); size += 7) {
    write_durably(folder.job_json(), text.substr(0, size));
    ASSERT_THAT(faults(), ElementsAre(StartsWith(folder.job_json().string() + ": "))) << size;
  }
  auto other = run;
  other.hidden = 65;
  write_durably(folder.job_json(), to_json(other).dump());
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("is not the job in run.json; it was damaged or edited")));
}

// Files of any name.

TEST_F(folder_of_a_run, has_files_that_are_known_by_what_they_say) {
  auto const elsewhere = scratch.path / "elsewhere";
  fs::copy_file(folder.summary_json(), elsewhere);
  EXPECT_EQ(check_stored(elsewhere).what, "a whole summary, of 1 case");
  write_durably(elsewhere, "{\"hidden\": 256}");
  EXPECT_EQ(check_stored(elsewhere).what, "a good job of 6 cases");
  write_durably(elsewhere, "{\"hidden\": 0}");
  EXPECT_THAT(check_stored(elsewhere).faults, ElementsAre(HasSubstr("/hidden")));
}

TEST_F(folder_of_a_run, has_json_that_may_be_indented_anew_but_not_edited) {
  auto document = json::parse(read_text(folder.summary_json()));
  write_durably(folder.summary_json(), document.dump());
  EXPECT_THAT(faults(), IsEmpty());
  document["status"] = "partial";
  write_durably(folder.summary_json(), document.dump());
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("its checksum does not match its content; it was damaged or edited")));
}

} // namespace
} // namespace plateau
