// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/cli/command_line.hpp"

#include "schemas/check_value.hpp"
#include "schemas/codec.hpp"
#include "schemas/error.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

namespace plateau {

namespace {

using sentences = std::vector<std::string>;

// A word as a sentence shows it: in quotes and cut where it could be misread.
std::string shown_word(std::string const& word) {
  auto const plain = [](unsigned char c) { return std::isgraph(c) != 0 && c != '"'; };
  constexpr std::size_t longest = 50;
  return !word.empty() && word.size() <= longest && std::ranges::all_of(word, plain) ? word : shown(word);
}

std::string list(std::vector<std::string> const& names) {
  std::string text;
  for (auto const& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

bool is_flag(std::string const& word) {
  return word.size() > 1 && word[0] == '-' && std::isdigit(static_cast<unsigned char>(word[1])) == 0;
}

// What a user may type for a subcommand. Options without a group are hidden: known, but never suggested.
class vocabulary {
public:
  explicit vocabulary(CLI::App& command) {
    for (auto* option : command.get_options()) {
      if (option->get_positional())
        positionals_.push_back(option);
      else if (option->get_required())
        required_options_.push_back(option);
      auto const add = [&](std::string const& name) {
        options_[name] = option;
        if (!option->get_group().empty()) suggestions_.push_back(name);
      };
      for (auto const& name : option->get_lnames()) add("--" + name);
      for (auto const& name : option->get_snames()) add("-" + name);
    }
  }

  std::vector<CLI::Option*> const& positionals() const { return positionals_; }
  std::vector<CLI::Option*> const& required_options() const { return required_options_; }

  /// Null when there is none of this name.
  CLI::Option* option(std::string const& name) const {
    auto const found = options_.find(name);
    return found == options_.end() ? nullptr : found->second;
  }

  /// Nothing for a single letter: every other is near.
  std::optional<std::string> meant_by(std::string const& name) const {
    return name.size() <= 2 ? std::nullopt : nearest(name, suggestions_);
  }

private:
  std::map<std::string, CLI::Option*> options_;
  std::vector<std::string> suggestions_;
  std::vector<CLI::Option*> positionals_, required_options_;
};

// An option as it was typed: --name, --name=value, -n or -nvalue.
struct typed_option {
  std::string name;
  std::optional<std::string> value;
};

typed_option split(std::string const& word, vocabulary const& known) {
  if (auto const equals = word.find('='); word.starts_with("--") && equals != std::string::npos)
    return {word.substr(0, equals), word.substr(equals + 1)};
  bool const one_dash_lost = known.option("-" + word) != nullptr;
  auto const* letter = known.option(word.substr(0, 2));
  if (word.size() == 2 || word.starts_with("--") || one_dash_lost) return {word, std::nullopt};
  bool const letter_takes_a_value = letter != nullptr && letter->get_items_expected_max() > 0;
  return letter_takes_a_value ? typed_option{word.substr(0, 2), word.substr(2)} : typed_option{word, std::nullopt};
}

// Why the option's check refuses a value; empty when it does not, or has none.
std::string complaint_about(CLI::Option& option, std::string value) try {
  return (*option.get_validator(0))(value);
} catch (CLI::OptionNotFound const&) {
  return "";
}

/// What is wrong with the words that follow a subcommand.
class reading {
public:
  reading(CLI::App& command, std::string title) : known_(command), title_(std::move(title)) {}

  sentences wrong_with(std::span<std::string const> words) {
    bool options_may_come = true;
    while (!words.empty()) {
      auto const word = words.front();
      words = words.subspan(1);
      if (options_may_come && word == "--")
        options_may_come = false;
      else if (options_may_come && is_flag(word))
        take_option(split(word, known_), words);
      else
        arguments_.push_back(word);
    }
    check_company();
    check_required_options();
    check_arguments();
    return std::move(wrong_);
  }

private:
  // Takes the option's value too, if it is one of the words that follow.
  void take_option(typed_option typed, std::span<std::string const>& following) {
    auto* option = known_.option(typed.name);
    bool const known = option != nullptr;
    if (!known) option = suggest(typed.name);
    if (option == nullptr || option->get_items_expected_max() == 0) {
      if (option != nullptr) times_given_.try_emplace(option, typed.name);
      if (option != nullptr && typed.value) wrong_.push_back(typed.name + " takes no value");
      return;
    }
    if (!typed.value && !following.empty() && !known_option(following.front())) {
      typed.value = following.front();
      following = following.subspan(1);
    }
    check_value_of(*option, typed);
    bool const first = times_given_.try_emplace(option, typed.name).second;
    if (!first && known && option->get_items_expected_max() == 1 && twice_.insert(option).second)
      wrong_.push_back(typed.name + " is given twice; give it once");
  }

  CLI::Option* suggest(std::string const& name) {
    auto const meant = known_.meant_by(name);
    wrong_.push_back("unknown option " + shown_word(name) + (meant ? "; did you mean " + *meant + "?" : ""));
    unknown_ = true;
    return meant ? known_.option(*meant) : nullptr;
  }

  bool known_option(std::string const& word) const {
    return is_flag(word) && known_.option(split(word, known_).name) != nullptr;
  }

  void check_value_of(CLI::Option& option, typed_option const& typed) {
    if (!typed.value) {
      auto const& what = option.get_description();
      wrong_.push_back(typed.name + " lacks its value" + (what.empty() ? "" : " (" + what + ")"));
    } else if (typed.value->empty()) {
      wrong_.push_back("the value of " + typed.name + " is empty; give one, or leave the option out");
    } else if (auto const complaint = complaint_about(option, *typed.value); !complaint.empty()) {
      wrong_.push_back(typed.name + " " + complaint);
    }
  }

  void check_company() {
    for (auto const& [option, name] : times_given_) {
      for (auto* const excluded : option->get_excludes())
        if (auto const other = times_given_.find(excluded); other != times_given_.end() && name < other->second)
          wrong_.push_back(name + " and " + other->second + " exclude each other; give one of them");
      for (auto* const needed : option->get_needs())
        if (!times_given_.contains(needed)) wrong_.push_back(name + " needs " + needed->get_name() + " beside it");
    }
  }

  void check_required_options() {
    for (auto* const option : known_.required_options())
      if (!times_given_.contains(option))
        wrong_.push_back(option->get_name() + " is missing (" + option->get_description() + ")");
  }

  // A word too many may be the value of an option that nobody knows: no complaint then.
  void check_arguments() {
    auto const& wanted = known_.positionals();
    std::vector<std::string> names;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      names.push_back(wanted[i]->get_name());
      bool const missing = i >= arguments_.size() && wanted[i]->get_required();
      bool const empty = i < arguments_.size() && arguments_[i].empty();
      if (missing || empty)
        wrong_.push_back(names.back() + (empty ? " is empty (" : " is missing (") + wanted[i]->get_description() + ")");
    }
    bool const last_takes_all = !wanted.empty() && wanted.back()->get_items_expected_max() > 1;
    for (std::size_t i = wanted.size(); i < arguments_.size() && !unknown_ && !last_takes_all; ++i)
      wrong_.push_back(shown_word(arguments_[i]) + " is one argument too many; " + title_ + " takes " +
                       (names.empty() ? "none" : list(names) + " alone"));
  }

  vocabulary known_;
  std::string title_;
  std::map<CLI::Option*, std::string> times_given_; ///< and the name by which it was given first
  std::set<CLI::Option*> twice_;
  std::vector<std::string> arguments_;
  bool unknown_ = false;
  sentences wrong_;
};

bool asks_for_help(std::span<std::string const> words) {
  constexpr std::array<std::string_view, 3> asking{"-h", "--help", "--version"};
  return std::ranges::find_first_of(words, asking) != words.end();
}

sentences wrong_before_the_subcommand(std::span<std::string const> words) {
  sentences wrong;
  for (auto const& word : words)
    wrong.push_back("unknown option " + shown_word(word) +
                    "; options follow the subcommand, as in plateau run JOB -n 2 (plateau --help lists all)");
  return wrong;
}

sentences wrong_with(CLI::App& program, std::span<std::string const> words) {
  auto const name = std::ranges::find_if_not(words, is_flag);
  auto const before = words.first(static_cast<std::size_t>(name - words.begin()));
  if (!before.empty()) return wrong_before_the_subcommand(before);
  std::vector<std::string> names;
  for (auto const* each : program.get_subcommands({})) names.push_back(each->get_name());
  if (words.empty()) return {"a subcommand is missing; choose from " + list(names) + " (plateau --help explains them)"};
  sentences wrong;
  std::optional<std::string> meant = *name;
  if (std::ranges::find(names, *name) == names.end()) {
    meant = nearest(*name, names);
    auto const hint = meant ? "; did you mean " + *meant + "? (" + list(names) + ")" : "; choose from " + list(names);
    wrong.push_back("unknown subcommand " + shown_word(*name) + hint);
  }
  if (!meant) return wrong;
  auto const title = "plateau " + *meant;
  auto options = reading(*program.get_subcommand(*meant), title).wrong_with(words.subspan(1));
  if (!options.empty()) options.back() += " (" + title + " --help lists all)";
  wrong.insert(wrong.end(), options.begin(), options.end());
  return wrong;
}

} // namespace

void refuse_bad_command_line(CLI::App& program, std::vector<std::string> const& words) {
  if (asks_for_help(words)) return;
  std::string text;
  for (auto const& sentence : wrong_with(program, words))
    text += (text.empty() ? "plateau: " : "\nplateau: ") + sentence;
  if (!text.empty()) throw input_error(text);
}

CLI::Validator fits(json schema) {
  auto const refusal = [schema](std::string& typed) -> std::string {
    auto value = schema.contains("enum") ? json(typed) : json::parse(typed, nullptr, false);
    std::vector<problem> problems;
    check_value(value.is_discarded() ? json(typed) : value, schema, "", problems);
    return problems.empty() ? "" : problems.front().what;
  };
  return {refusal, needed(schema)};
}

CLI::Validator read_by(std::function<void(std::string const&)> parse) {
  auto const refusal = [parse = std::move(parse)](std::string& typed) -> std::string {
    try {
      parse(typed);
      return "";
    } catch (input_error const& e) {
      return e.what();
    }
  };
  return {refusal, ""};
}

} // namespace plateau
