// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// The part of HDF5 that run.h5 is written and checked with, and the conventions by which h5py, xarray and the netCDF
/// tools understand it. hdf5.h itself is included by hdf5.cpp alone. Everything here throws h5::error. Not
/// for several threads at once.
namespace plateau::h5 {

/// What HDF5 says of a failure, the cause first.
struct error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Owns one open file, group or dataset.
class node {
public:
  using closer = int (*)(std::int64_t);

  node() = default;
  node(std::int64_t id, closer how_to_close) : id_(id), close_(how_to_close) {}
  node(node&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  node& operator=(node&& other) noexcept;
  ~node();

  std::int64_t id() const { return id_; }
  void close(); ///< now, so that a failure can be seen; the destructor ignores it

private:
  std::int64_t id_ = -1;
  closer close_ = nullptr;
};

/// A new file. An older one of that name is replaced. File locks are used where the file system has them.
node create_file(std::filesystem::path const& path);
node create_group(node const& parent, std::string const& name);

void set_attribute(node const& of, char const* name, std::string_view text);
void set_attribute(node const& of, char const* name, std::int64_t value);

/// How a variable is read: what it is in words, and its unit ("ns", "bytes", "1").
struct meaning {
  std::string_view long_name, units;
};

/// The shape of a dataset of numbers. Datasets grow along their first dimension, up to `most_rows`.
struct shape {
  std::vector<std::uint64_t> size;
  std::uint64_t most_rows;
  std::vector<std::uint64_t> chunk;
};

/// A shape that does not grow, in one chunk. No dimension is 0.
shape fixed(std::vector<std::uint64_t> size);

/// A dataset of numbers with Fletcher32 checksums, not compressed. What is never written reads as `fill`,
/// which is also its _FillValue.
node create_numbers(node const& group, std::string const& name, shape const& s, meaning const& m, std::int64_t fill);
node create_numbers(node const& group, std::string const& name, shape const& s, meaning const& m, double fill);

/// A coordinate: numbers of one dimension that are all there.
node create_coordinate(node const& group, std::string const& name, shape const& s, meaning const& m);

/// Gives a dataset its number of rows.
void set_rows(node const& dataset, std::vector<std::uint64_t> const& size);

/// Writes the block of `count` elements that begins at `start`.
void write(node const& dataset, std::vector<std::uint64_t> const& start, std::vector<std::uint64_t> const& count,
           std::span<std::int64_t const> values);
void write(node const& dataset, std::vector<std::uint64_t> const& start, std::vector<std::uint64_t> const& count,
           std::span<double const> values);

/// UTF-8 texts: one dimension, or none for a single text.
node write_texts(node const& group, std::string const& name, std::span<std::string const> texts,
                 std::string_view long_name);
node write_text(node const& group, std::string const& name, std::string_view text, std::string_view long_name);

/// A dimension without a coordinate of its own, marked as netCDF marks it.
node create_dimension(node const& group, std::string const& name, std::uint64_t size);

/// Makes a coordinate the scale of its dimension.
void make_scale(node const& coordinate, std::string const& name);

/// Names a dataset's dimensions by their scales, in order.
void attach_scales(node const& dataset, std::span<node const* const> scales);

/// A group or dataset of a file, with what can be told of it without reading its samples.
struct item {
  enum class kind { group, integers, reals, texts, other };
  kind what = kind::other;
  std::vector<std::uint64_t> size;                       ///< of a dataset; none: a single value
  std::vector<std::int64_t> values;                      ///< of integers in one dimension, up to a million
  std::string text;                                      ///< of a single text
  std::map<std::string, std::string> text_attributes;    ///< single texts of variable length
  std::map<std::string, std::int64_t> number_attributes; ///< single integers
};

/// Everything in a file by its path, as in "eager.c2/soak/rank"; the root is "". Only for bytes that are known to be
/// whole: HDF5 trusts its own structure and may crash where that is damaged.
std::map<std::string, item> read_items(std::filesystem::path const& path);

} // namespace plateau::h5
