// SPDX-License-Identifier: Apache-2.0
#include "tests/torch/modes_support.hpp"
#include "worker/compile/package.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

namespace plateau {
namespace {

namespace fs = std::filesystem;
using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

// An environment variable for one test.
class variable {
public:
  variable(char const* name, std::string const& value) : name_(name) {
    if (auto const* const before = std::getenv(name)) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  ~variable() {
    if (before_)
      setenv(name_, before_->c_str(), 1);
    else
      unsetenv(name_);
  }

private:
  char const* name_;
  std::optional<std::string> before_;
};

class a_package : public ::testing::Test {
protected:
  fs::path const folder = fs::temp_directory_path() / ("plateau-compile-test-" + std::to_string(getpid()));
  variable const cache{"PLATEAU_CACHE", folder};
  ~a_package() override { fs::remove_all(folder); }
};

std::int64_t events_of_a_request(ready_case& c) {
  auto const before = c.dev.read_counters().allocation_events;
  c.executors[0]->submit();
  c.executors[0]->wait();
  c.executors[0]->drop();
  return c.dev.read_counters().allocation_events - before;
}

// Every thread's result is right while all run at once.
void expect_right_on_all_threads(ready_case& c) {
  std::vector<double> errors(c.executors.size(), 1);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < errors.size(); ++t)
    threads.emplace_back([&, t] {
      c10::InferenceMode const inference;
      c.streams[t]->enter();
      for (int request = 0; request < 50; ++request) {
        c.executors[t]->submit();
        c.executors[t]->wait();
        if (request == 49)
          errors[t] = error_of(c.executors[t]->output(), reference_output(c.prog, c.weights, c.inputs[t]));
        c.executors[t]->drop();
      }
    });
  for (auto& thread : threads) thread.join();
  for (auto const error : errors) EXPECT_LT(error, 1e-5);
}

TEST_F(a_package, runs_on_all_threads_with_fewer_events_than_eager_and_is_found_again) {
  auto j = small_job();
  j.use_inplace_residual = true;
  {
    ready_case c(j, "compiled_aten", 3);
    EXPECT_THAT(c.told, ElementsAre(true, false));
    ASSERT_TRUE(c.mode->package());
    EXPECT_FALSE(c.mode->package()->from_cache);
    EXPECT_GT(c.mode->package()->compile_seconds, 0);
    expect_right_on_all_threads(c);
    ready_case eager(j, "eager");
    events_of_a_request(eager);
    EXPECT_LT(events_of_a_request(c), events_of_a_request(eager));
  }
  auto const before = install_cpu_allocator().read().allocated_bytes;
  {
    ready_case c(j, "compiled", 2); // the same options by another name
    EXPECT_THAT(c.told, IsEmpty());
    EXPECT_TRUE(c.mode->package()->from_cache);
    expect_right_on_all_threads(c);
  }
  EXPECT_EQ(install_cpu_allocator().read().allocated_bytes, before) << "the weights die with their case";
}

TEST_F(a_package, is_not_there_without_a_compiler_and_the_reason_is_the_compiler_s_own) {
  variable const compiler("CXX", "no-such-compiler");
  EXPECT_THAT([] { ready_case(small_job(), "compiled"); },
              ThrowsMessage<unsupported>(::testing::AllOf(HasSubstr("no-such-compiler"), HasSubstr(".log"))));
}

TEST_F(a_package, is_not_there_without_python) {
  variable const python("PLATEAU_PYTHON", "/no/such/python");
  EXPECT_THAT([] { ready_case(small_job(), "compiled"); }, ThrowsMessage<unsupported>(HasSubstr("PLATEAU_PYTHON")));
}

package_spec some_spec() {
  package_spec spec;
  spec.program = "p";
  spec.dtype = "float32";
  spec.compile_mode = "default";
  spec.gemm_backends = "ATEN";
  spec.device = "cpu";
  spec.torch = "1.0.0";
  return spec;
}

TEST_F(a_package, of_another_torch_is_refused) {
  EXPECT_THAT([] { find_or_compile(some_spec(), {}, {}); },
              ThrowsMessage<compile_error>(HasSubstr("the worker 1.0.0")));
}

// The cache alone, with a compiler that is a shell script: it takes a moment, counts its runs and writes something.
class a_cache : public a_package {
protected:
  a_cache() {
    fs::create_directories(folder);
    std::ofstream(folder / "python") << "#!/bin/sh\necho run >>" << (folder / "runs").string()
                                     << "\nsleep 0.2\necho package >\"$4\"\n";
    fs::permissions(folder / "python", fs::perms::owner_all);
  }
  std::int64_t runs() const {
    std::ifstream file(folder / "runs");
    return std::count(std::istreambuf_iterator<char>(file), {}, '\n');
  }
  variable const python{"PLATEAU_PYTHON", folder / "python"};
};

TEST_F(a_cache, compiles_once_for_all_who_want_the_same_at_the_same_time) {
  std::vector<std::thread> ranks; // a lock belongs to an open file, so threads stand for processes
  std::atomic<int> compiled = 0;
  for (int rank = 0; rank < 4; ++rank)
    ranks.emplace_back([&] { compiled += find_or_compile(some_spec(), {}, {}).info.from_cache ? 0 : 1; });
  for (auto& rank : ranks) rank.join();
  EXPECT_EQ(compiled, 1);
  EXPECT_EQ(runs(), 1);
}

TEST_F(a_cache, compiles_again_what_is_not_whole) {
  auto const made = find_or_compile(some_spec(), {}, {});
  EXPECT_TRUE(find_or_compile(some_spec(), {}, {}).info.from_cache);
  fs::resize_file(made.file, 3);
  EXPECT_FALSE(find_or_compile(some_spec(), {}, {}).info.from_cache);
  fs::remove(made.file);
  EXPECT_FALSE(find_or_compile(some_spec(), {}, {}).info.from_cache);
  EXPECT_EQ(runs(), 3);
}

TEST_F(a_cache, knows_where_and_how_a_package_was_compiled) {
  find_or_compile(some_spec(), {}, {"a GPU", "pretend GPU", "sm_90, 132 SMs", {}});
  auto const found = find_or_compile(some_spec(), {}, {"another", "own device", "sm_90, 132 SMs", {}}).info;
  EXPECT_TRUE(found.from_cache);
  EXPECT_EQ(found.compiled_on, "a GPU");
  EXPECT_EQ(found.compiled_by, "pretend GPU");
  EXPECT_EQ(found.architecture, "sm_90, 132 SMs");
  EXPECT_EQ(found.torch, "1.0.0");
  EXPECT_FALSE(found.host.value().empty());
}

TEST_F(a_cache, finds_without_compiling) {
  EXPECT_FALSE(find_package(some_spec()));
  find_or_compile(some_spec(), {}, {});
  EXPECT_TRUE(find_package(some_spec()));
  EXPECT_EQ(runs(), 1);
}

TEST_F(a_cache, never_gives_out_a_rehearsal_s_package_to_be_timed) {
  auto rehearsed = some_spec();
  rehearsed.for_rehearsal = true;
  find_or_compile(rehearsed, {}, {});
  EXPECT_FALSE(find_package(some_spec()));
}

// Whatever name it was copied to.
TEST_F(a_cache, never_gives_out_a_package_for_another_architecture) {
  auto const of = [](char const* architecture) {
    auto spec = some_spec();
    spec.architecture = architecture;
    return find_or_compile(spec, {}, {});
  };
  auto const hopper = of("sm_90, 132 SMs"), ampere = of("sm_80, 108 SMs");
  EXPECT_NE(hopper.file, ampere.file);
  auto const overwrite = fs::copy_options::overwrite_existing;
  fs::copy_file(ampere.file, hopper.file, overwrite);
  fs::copy_file(folder / (ampere.info.key + ".json"), folder / (hopper.info.key + ".json"), overwrite);
  EXPECT_FALSE(of("sm_90, 132 SMs").info.from_cache);
  EXPECT_EQ(runs(), 3);
}

TEST_F(a_cache, keeps_apart_what_compiles_differently) {
  auto const key = find_or_compile(some_spec(), {}, {}).info.key;
  auto other = some_spec();
  other.intra_op_threads = 2;
  EXPECT_NE(find_or_compile(other, {}, {}).info.key, key);
  other = some_spec();
  other.architecture = "sm 9.0";
  EXPECT_NE(find_or_compile(other, {}, {}).info.key, key);
  variable const flag("TORCHINDUCTOR_FREEZING", "1");
  EXPECT_NE(find_or_compile(some_spec(), {}, {}).info.key, key);
}

TEST_F(a_cache, leaves_nothing_half_done_behind) {
  auto const made = find_or_compile(some_spec(), {}, {});
  for (auto const& left : fs::directory_iterator(folder)) EXPECT_FALSE(left.path().extension() == ".building");
  EXPECT_TRUE(fs::exists(folder / (made.info.key + ".json")));
}

TEST_F(a_package, needs_a_cache_that_can_be_written) {
  fs::create_directories(folder);
  std::ofstream(folder / "file").put('x');
  variable const not_a_folder("PLATEAU_CACHE", folder / "file");
  EXPECT_THAT([] { ready_case(small_job(), "compiled"); }, ThrowsMessage<unsupported>(HasSubstr("PLATEAU_CACHE")));
}

} // namespace
} // namespace plateau
