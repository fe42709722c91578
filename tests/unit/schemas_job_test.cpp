// SPDX-License-Identifier: Apache-2.0
#include "schemas/job.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace plateau {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string file(std::string const& path) {
  std::ifstream in(std::string(PLATEAU_SOURCE_DIR) + "/" + path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

job with(std::vector<job_override> const& overrides, std::string_view text = "{}") {
  return parse_job(text, "jobs/demo.json", overrides);
}

std::string message_of(std::string_view text, std::vector<job_override> const& overrides = {}) {
  try {
    parse_job(text, "bad.json", overrides);
  } catch (job_error const& e) {
    return e.what();
  }
  ADD_FAILURE() << "accepted: " << text;
  return "";
}

std::string nested(std::size_t depth) {
  return "{\"soak\": " + std::string(depth, '[') + std::string(depth, ']') + "}";
}

TEST(job, is_complete_when_it_says_nothing) {
  auto const j = parse_job("{}", "jobs/demo.json");
  EXPECT_EQ(j.name, "demo");
  EXPECT_EQ(j.hidden, 1024);
  EXPECT_THAT(j.modes, ElementsAre("eager", "compiled_aten", "arena"));
  EXPECT_EQ(j.soak.windows, 12);
  EXPECT_EQ(requests_per_soak_window(j), 30);
  EXPECT_FALSE(j.dtype);
}

TEST(job, takes_the_device_and_its_number_format_from_what_is_there) {
  auto const j = parse_job("{}", "demo.json");
  EXPECT_EQ(resolved_for(j, "cuda").dtype, "float16");
  EXPECT_EQ(resolved_for(j, "cpu").dtype, "float32");
  EXPECT_EQ(resolved_for(j, "cpu").device, "cpu");
  auto const asked = with({{"dtype", "torch.bfloat16"}});
  EXPECT_EQ(resolved_for(asked, "cpu").dtype, "torch.bfloat16");
  EXPECT_EQ(plain_dtype("torch.bfloat16"), "bfloat16");
  EXPECT_EQ(plain_dtype("bfloat16"), "bfloat16");
}

TEST(job, is_read_from_the_meta_of_a_result_file) {
  auto const text = file("tests/data/seed_result.json");
  auto const j = parse_job(text, "seed_result.json");
  EXPECT_EQ(j.name, "seed_result");
  auto const written = to_json(j);
  auto const meta = json::parse(text)["meta"];
  for (auto const& [key, value] : meta.items()) EXPECT_EQ(written[key], value) << key;
  EXPECT_EQ(cases_of(j).size(), json::parse(text)["results"].size());
}

TEST(job, has_the_seeds_value_as_the_default_of_every_field_that_the_seed_has) {
  auto const meta = json::parse(file("tests/data/seed_result.json"))["meta"];
  auto const defaults = to_json(resolved_for(parse_job("{}", "demo.json"), "cuda"));
  for (auto const& [key, value] : meta.items())
    EXPECT_EQ(defaults[key], key == "dtype" ? json("float16") : value) << key;
}

TEST(job, is_read_back_from_what_it_writes) {
  auto const full =
      R"({"name": "n", "workload": "noop", "device": "cpu", "dtype": "torch.float16", "hidden": 1, "batch": 2,
    "seq_len": 3, "warmup": 0, "requests_per_worker": 5, "concurrency_levels": [7, 6], "modes": ["arena", "eager"],
    "compile_mode": "max-autotune", "inductor_gemm_backends": "ATEN,TRITON", "allow_tf32": true,
    "use_inplace_residual": true, "random_seed": 9223372036854775807, "repeats": 2, "intra_op_threads": 3,
    "isolation": "run", "stream_threads": "fresh", "sync": "blocking", "fabric": "check",
    "soak": {"windows": 0, "requests_per_window": 11}, "env": {"A": "", "B": "x=y,z"},
    "timeouts_s": {"compile": 1.5, "prepare": 2, "stall": 3, "collective": 4, "fabric": 5},
    "inject": ["leak:rank=1,case=arena.c7.r2,every=2", "hang"]})";
  auto const j = parse_job(full, "demo.json");
  EXPECT_EQ(parse_job(to_json(j).dump(), "other.json").name, "n");
  EXPECT_EQ(to_json(parse_job(to_json(j).dump(), "other.json")), to_json(j));
  auto const expected = json::parse(full);
  EXPECT_EQ(expected.size(), job_fields().size()) << "this test names every field";
  for (auto const& [key, value] : expected.items()) EXPECT_EQ(to_json(j)[key], value) << key;
}

TEST(job, takes_every_field_as_a_flag) {
  auto const j = with({{"name", "flags"},
                       {"workload", "noop"},
                       {"device", "cpu"},
                       {"dtype", "bfloat16"},
                       {"hidden", "256"},
                       {"batch", "2"},
                       {"seq_len", "32"},
                       {"warmup", "0"},
                       {"requests_per_worker", "400"},
                       {"concurrency_levels", "2,4"},
                       {"modes", "eager,arena"},
                       {"compile_mode", "max-autotune"},
                       {"inductor_gemm_backends", "ATEN,TRITON"},
                       {"allow_tf32", "true"},
                       {"use_inplace_residual", "true"},
                       {"random_seed", "7"},
                       {"repeats", "3"},
                       {"intra_op_threads", "2"},
                       {"isolation", "run"},
                       {"stream_threads", "fresh"},
                       {"sync", "yield"},
                       {"fabric", "off"},
                       {"soak", "windows=4,requests_per_window=25"},
                       {"env", "A=1,B=2"},
                       {"timeouts_s", "stall=2.5"},
                       {"inject", "slow:ms=2.5,rank=0"}});
  auto const expected = json::parse(R"({"name": "flags", "workload": "noop", "device": "cpu", "dtype": "bfloat16",
    "hidden": 256, "batch": 2, "seq_len": 32, "warmup": 0, "requests_per_worker": 400, "concurrency_levels": [2, 4],
    "modes": ["eager", "arena"], "compile_mode": "max-autotune", "inductor_gemm_backends": "ATEN,TRITON",
    "allow_tf32": true, "use_inplace_residual": true, "random_seed": 7, "repeats": 3, "intra_op_threads": 2,
    "isolation": "run", "stream_threads": "fresh", "sync": "yield", "fabric": "off",
    "soak": {"windows": 4, "requests_per_window": 25}, "env": {"A": "1", "B": "2"},
    "timeouts_s": {"compile": 900.0, "prepare": 300.0, "stall": 2.5, "collective": 60.0, "fabric": 120.0},
    "inject": ["slow:ms=2.5,rank=0"]})");
  EXPECT_EQ(expected.size(), job_fields().size()) << "this test names every field";
  for (auto const& [key, value] : expected.items()) EXPECT_EQ(to_json(j)[key], value) << key;
}

TEST(job, flags_win_over_the_file_and_the_last_of_a_flag_wins) {
  EXPECT_EQ(with({{"hidden", "8"}}, R"({"hidden": 4})").hidden, 8);
  EXPECT_EQ(with({{"hidden", "8"}, {"hidden", "16"}}).hidden, 16);
  EXPECT_THAT(with({{"modes", "[\"arena\"]"}}).modes, ElementsAre("arena"));
}

TEST(job, pairs_change_those_keys_alone) {
  auto const j = with({{"soak", "windows=3"}, {"env", "B=2"}, {"env", "C=3"}},
                      R"({"soak": {"requests_per_window": 50}, "env": {"A": "1", "B": "1"}})");
  EXPECT_EQ(j.soak.windows, 3);
  EXPECT_EQ(j.soak.requests_per_window, 50);
  EXPECT_EQ(to_json(j)["env"], json::parse(R"({"A": "1", "B": "2", "C": "3"})"));
}

TEST(job, of_a_soaks_seconds_and_requests_a_flag_gives_one_in_place_of_the_other) {
  auto const timed = with({{"soak", "seconds=7200"}}, R"({"soak": {"windows": 6, "requests_per_window": 50}})");
  EXPECT_EQ(timed.soak.windows, 6);
  EXPECT_EQ(timed.soak.seconds, 7200);
  EXPECT_FALSE(timed.soak.requests_per_window);
  auto const counted = with({{"soak", "seconds=60"}, {"soak", "requests_per_window=20"}});
  EXPECT_FALSE(counted.soak.seconds);
  EXPECT_EQ(counted.soak.requests_per_window, 20);
  EXPECT_EQ(with({{"soak", "windows=3"}}, R"({"soak": {"seconds": 60}})").soak.seconds, 60);
  EXPECT_THAT(message_of("{}", {{"soak", "seconds=60,requests_per_window=20"}}), HasSubstr("contradict each other"));
}

TEST(job, each_flag_adds_a_fault_and_a_list_stands_for_all_of_them) {
  EXPECT_THAT(with({{"inject", "leak:rank=1,every=5"}, {"inject", "hang"}}, R"({"inject": ["slow"]})").inject,
              ElementsAre("slow", "leak:rank=1,every=5", "hang"));
  EXPECT_THAT(with({{"inject", R"(["crash", "oom:rank=2"])"}, {"inject", "hang"}}, R"({"inject": ["slow"]})").inject,
              ElementsAre("crash", "oom:rank=2", "hang"));
  EXPECT_TRUE(with({{"inject", "[]"}}, R"({"inject": ["slow"]})").inject.empty());
}

TEST(job, a_soak_by_seconds_is_read_back_and_says_no_requests) {
  auto const j = with({{"soak", "windows=6,seconds=90"}});
  EXPECT_EQ(j.soak.seconds, 90);
  EXPECT_EQ(to_json(j)["soak"], json::parse(R"({"windows": 6, "seconds": 90.0})"));
  EXPECT_EQ(to_json(parse_job(to_json(j).dump(), "other.json"))["soak"], to_json(j)["soak"]);
  EXPECT_EQ(requests_per_soak_window(j), 30); // of the tracked window
}

TEST(job, the_tracked_window_of_a_soak_by_seconds_is_a_small_one) {
  auto const tracked = [](char const* soak, char const* requests) {
    return requests_per_soak_window(with({{"soak", soak}, {"requests_per_worker", requests}}));
  };
  EXPECT_EQ(tracked("seconds=60", "4"), 10);
  EXPECT_EQ(tracked("seconds=60", "2000"), 500);
  EXPECT_EQ(tracked("seconds=60", "1000000"), 1000);
  EXPECT_EQ(tracked("windows=3", "1000000"), 250'000);
}

TEST(job, a_comma_in_an_environment_variables_value_stays_in_it) {
  auto const j = with({{"env", "PYTORCH_ALLOC_CONF=expandable_segments:True,max_split_size_mb:128,X=1"}});
  EXPECT_EQ(j.env.at("PYTORCH_ALLOC_CONF"), "expandable_segments:True,max_split_size_mb:128");
  EXPECT_EQ(j.env.at("X"), "1");
}

TEST(job, its_grid_runs_repeats_outermost_then_modes_then_levels) {
  auto texts = [](job const& j) {
    std::vector<std::string> out;
    for (auto const& id : cases_of(j)) out.push_back(id.text());
    return out;
  };
  EXPECT_THAT(texts(with({{"modes", "eager,arena"}, {"concurrency_levels", "2,4"}})),
              ElementsAre("eager.c2", "eager.c4", "arena.c2", "arena.c4"));
  EXPECT_THAT(texts(with({{"modes", "eager,arena"}, {"concurrency_levels", "2"}, {"repeats", "2"}})),
              ElementsAre("eager.c2.r1", "arena.c2.r1", "eager.c2.r2", "arena.c2.r2"));
}

TEST(job, lists_every_problem_at_once_with_the_name_that_was_meant) {
  auto const message = message_of(R"({"concurency_levels": [4], "batch": 0, "modes": ["eager", "arena", "arean"]})",
                                  {{"hidden", "many"}});
  EXPECT_THAT(message, HasSubstr("bad.json: 4 problems; nothing was started"));
  EXPECT_THAT(message, HasSubstr("  /concurency_levels  unknown field; did you mean concurrency_levels?"));
  EXPECT_THAT(message, HasSubstr("  /batch              0; needs an integer >= 1"));
  EXPECT_THAT(message, HasSubstr("  /modes/2            \"arean\"; did you mean arena? (eager, compiled,"));
  EXPECT_THAT(message, HasSubstr("  --hidden            \"many\"; needs an integer"));
  EXPECT_THAT(message, HasSubstr("fields: plateau validate --fields"));
}

TEST(job, a_long_list_of_problems_is_cut) {
  std::string text = "{";
  for (int i = 0; i < 1000; ++i) text += (i ? ",\"x" : "\"x") + std::to_string(i) + "\": 1";
  auto const message = message_of(text + "}");
  EXPECT_THAT(message, HasSubstr("1000 problems"));
  EXPECT_THAT(message, HasSubstr("and 950 more"));
}

TEST(job, a_problem_shows_a_key_without_its_control_characters_and_as_a_pointer) {
  EXPECT_THAT(message_of(R"({"\u001b[31mred": 1})"), testing::Not(HasSubstr("\x1b")));
  EXPECT_THAT(message_of(R"({"a/b~c": 1})"), HasSubstr("/a~1b~0c"));
}

struct bad_text {
  std::string name, text, where, what;
};

// What no schema can express: text that is not one JSON document, and limits that join fields.
class text_that_is_no_job : public testing::TestWithParam<bad_text> {};

TEST_P(text_that_is_no_job, is_refused_with_the_place_and_the_reason) {
  auto const& bad = GetParam();
  try {
    parse_job(bad.text, "bad.json");
    FAIL() << "accepted";
  } catch (job_error const& e) {
    ASSERT_FALSE(e.problems.empty());
    EXPECT_EQ(e.problems[0].where, bad.where);
    EXPECT_THAT(e.problems[0].what, HasSubstr(bad.what));
    EXPECT_THAT(std::string(e.what()).size(), testing::Lt(400u));
  }
}

INSTANTIATE_TEST_SUITE_P(
    of, text_that_is_no_job,
    testing::Values(
        bad_text{"nothing", "", "", "not JSON"}, bad_text{"half", R"({"hidden": 25)", "", "not JSON"},
        bad_text{"trailing_comma", R"({"hidden": 256,})", "", "line 1"},
        bad_text{"comment", "{} // all defaults", "", "not JSON"}, bad_text{"two_documents", "{}{}", "", "not JSON"},
        bad_text{"single_quotes", "{'hidden': 256}", "", "not JSON"},
        bad_text{"not_a_number", R"({"hidden": NaN})", "", "not JSON"},
        bad_text{"infinity", R"({"hidden": Infinity})", "", "not JSON"},
        bad_text{"exponent_beyond_double", R"({"hidden": 1e999})", "", "not JSON"},
        bad_text{"leading_zero", R"({"hidden": 0256})", "", "not JSON"},
        bad_text{"hexadecimal", R"({"hidden": 0x100})", "", "not JSON"},
        bad_text{"utf16", std::string("\xff\xfe{\0}\0", 6), "", "not JSON"},
        bad_text{"broken_utf8", "{\"name\": \"\xc3\x28\"}", "", "not JSON"},
        bad_text{"binary", std::string("\x89HDF\r\n\x1a\n\0\0\0\0", 12), "", "not JSON"},
        bad_text{"deep", nested(100'000), "", "nested more than 64 deep"},
        bad_text{"deep_and_open", std::string(100'000, '['), "", "nested more than 64 deep"},
        bad_text{"twice", R"({"hidden": 1, "batch": 1, "hidden": 1})", "/hidden", "given twice"},
        bad_text{"twice_inside", R"({"soak": {"windows": 1, "windows": 2}})", "/soak/windows", "given twice"},
        bad_text{"array", "[1, 2]", "", "a job is a JSON object"},
        bad_text{"null", "null", "", "a job is a JSON object"},
        bad_text{"too_many_samples", R"({"requests_per_worker": 100000000, "concurrency_levels": [1, 4]})",
                 "/requests_per_worker", "2^25"},
        bad_text{"too_big_activations", R"({"batch": 1024, "seq_len": 1024, "hidden": 1024})", "/batch", "2^30"},
        bad_text{"too_big_result", R"({"batch": 1048576, "seq_len": 1, "hidden": 1})", "/batch", "2^30"},
        bad_text{"two_lengths_of_a_soak", R"({"soak": {"seconds": 60, "requests_per_window": 50}})", "/soak",
                 "contradict each other"},
        bad_text{"seconds_without_windows", R"({"soak": {"seconds": 60, "windows": 0}})", "/soak", "windows >= 1"},
        bad_text{"dtype_of_others", R"({"dtype": "bf16"})", "/dtype", "\"bf16\"; did you mean bfloat16? (float32,"},
        bad_text{"fault_misspelt", R"({"inject": ["slow", "leek:rank=1"]})", "/inject/1", "did you mean leak? (leak,"},
        bad_text{"fault_key_misspelt", R"({"inject": ["leak:evry=5"]})", "/inject/0/evry", "did you mean every?"},
        bad_text{"fault_key_of_another_kind", R"({"inject": ["crash:bytes=5"]})", "/inject/0/bytes", "unknown field"},
        bad_text{"fault_value", R"({"inject": ["leak:every=often"]})", "/inject/0/every", "needs an integer >= 1"},
        bad_text{"fault_value_0", R"({"inject": ["slow:ms=0"]})", "/inject/0/ms", "needs a number > 0"},
        bad_text{"fault_value_nan", R"({"inject": ["slow:ms=nan"]})", "/inject/0/ms", "needs a number > 0"},
        bad_text{"fault_value_missing", R"({"inject": ["leak:rank"]})", "/inject/0", "\"rank\"; needs key=value"},
        bad_text{"fault_no_keys", R"({"inject": ["leak:"]})", "/inject/0", "needs key=value"},
        bad_text{"fault_key_twice", R"({"inject": ["leak:rank=1,rank=2"]})", "/inject/0/rank", "given twice"},
        bad_text{"fault_no_such_case", R"({"inject": ["leak", "leak:case=eager.c2"]})", "/inject/1",
                 "\"eager.c2\" is no case of this job; needs one like eager.c4"},
        bad_text{"fault_no_case_id", R"({"inject": ["leak:case=eager"]})", "/inject/0", "is no case of this job"},
        bad_text{"fault_no_such_repeat", R"({"repeats": 2, "inject": ["leak:case=eager.c4"]})", "/inject/0",
                 "needs one like eager.c4.r1"},
        bad_text{"env_without_name", R"({"env": {"": "1"}})", "/env/", "environment variable"},
        bad_text{"env_with_equals", R"({"env": {"A=B": "1"}})", "/env/A=B", "environment variable"},
        bad_text{"env_with_nul", R"({"env": {"A": "1\u00002"}})", "/env/A", "environment variable"}),
    [](auto const& each) { return each.param.name; });

struct bad_flag {
  std::string name, field, text, what;
};

class flag_that_does_not_fit : public testing::TestWithParam<bad_flag> {};

TEST_P(flag_that_does_not_fit, is_refused_with_what_was_typed) {
  auto const& bad = GetParam();
  try {
    with({{bad.field, bad.text}});
    FAIL() << "accepted";
  } catch (job_error const& e) {
    ASSERT_FALSE(e.problems.empty());
    EXPECT_THAT(e.problems[0].where, testing::StartsWith("--"));
    EXPECT_THAT(e.problems[0].what, HasSubstr(bad.what));
  }
}

INSTANTIATE_TEST_SUITE_P(
    of, flag_that_does_not_fit,
    testing::Values(bad_flag{"word", "hidden", "many", "\"many\"; needs an integer"},
                    bad_flag{"fraction", "hidden", "2.5", "2.5; needs an integer"},
                    bad_flag{"nothing", "hidden", "", "\"\"; needs an integer"},
                    bad_flag{"not_a_number", "timeouts_s", "stall=nan", "needs a number"},
                    bad_flag{"list_with_hole", "modes", "eager,", "\"\"; needs one of"},
                    bad_flag{"list_of_words", "concurrency_levels", "2,four", "\"four\"; needs an integer"},
                    bad_flag{"no_pairs", "soak", "12", "needs an object"},
                    bad_flag{"unknown_key", "soak", "window=3", "did you mean windows?"},
                    bad_flag{"deep", "soak", std::string(100'000, '[') + std::string(100'000, ']'), "needs an object"},
                    bad_flag{"twice_inside", "soak", R"({"windows":1,"windows":2})", "needs an object"},
                    bad_flag{"fault", "inject", "leek", "\"leek\"; did you mean leak?"},
                    bad_flag{"broken_utf8_in_a_fault", "inject", "leak\xff", "needs a list"},
                    bad_flag{"broken_utf8", "name", "\xc3\x28", "needs a text (UTF-8)"},
                    bad_flag{"broken_utf8_in_env", "env", "A=\xff", "needs an object"},
                    bad_flag{"unknown_field", "hiden", "1", "did you mean hidden?"}),
    [](auto const& each) { return each.param.name; });

TEST(jobs, differ_field_by_field_and_key_by_key) {
  auto const before = parse_job("{}", "job");
  EXPECT_TRUE(differences(before, before).empty());
  auto after = before;
  after.hidden = 512;
  after.modes = {"arena"};
  after.soak.seconds = 60;
  after.timeouts_s.stall = 7;
  after.env["A/B"] = "1";
  auto const all = differences(before, after);
  EXPECT_EQ(told(all, "before", "now"), "/hidden: 1024 before, 512 now\n"
                                        "/modes: [\"eager\",\"compiled_aten\",\"arena\"] before, [\"arena\"] now\n"
                                        "/soak/requests_per_window: 30 before, absent now\n"
                                        "/soak/seconds: absent before, 60.0 now\n"
                                        "/env/A~1B: absent before, \"1\" now\n"
                                        "/timeouts_s/stall: 120.0 before, 7.0 now");
}

} // namespace
} // namespace plateau
