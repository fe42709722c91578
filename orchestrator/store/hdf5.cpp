// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/store/hdf5.hpp"

#include <cstdio>
#include <type_traits>

#include <hdf5.h>
#include <hdf5_hl.h>

namespace plateau::h5 {

static_assert(std::is_same_v<hid_t, std::int64_t> && sizeof(hsize_t) == sizeof(std::uint64_t));

namespace {

// The innermost entry of HDF5's error stack knows the cause.
herr_t take_first(unsigned, H5E_error2_t const* entry, void* text) {
  auto& out = *static_cast<std::string*>(text);
  if (out.empty() && entry->desc != nullptr) out = entry->desc;
  return 0;
}

// Of a failed write HDF5 gives a page, with what the system said in quotes.
std::string cause_of_failure() {
  std::string cause;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_first, &cause);
  std::string const before = "error message = '";
  auto const start = cause.find(before);
  if (start == std::string::npos) return cause.empty() ? "HDF5 says no more" : cause;
  auto const said = cause.substr(start + before.size());
  return said.substr(0, said.find('\''));
}

template <class Result>
Result checked(Result result, std::string const& what) {
  if (result >= 0) return result;
  throw error(what + ": " + cause_of_failure());
}

node owned(hid_t id, node::closer close, std::string const& what) { return {checked(id, what), close}; }

node property_list(hid_t of) { return owned(H5Pcreate(of), H5Pclose, "cannot make a property list"); }

node text_type() {
  auto type = owned(H5Tcopy(H5T_C_S1), H5Tclose, "cannot make a type");
  checked(H5Tset_size(type.id(), H5T_VARIABLE), "cannot make a type");
  checked(H5Tset_cset(type.id(), H5T_CSET_UTF8), "cannot make a type");
  return type;
}

node dataspace(std::vector<std::uint64_t> const& size, std::uint64_t const* most) {
  std::vector<hsize_t> const now(size.begin(), size.end());
  std::vector<hsize_t> limit = now;
  if (most != nullptr) limit[0] = *most;
  return owned(H5Screate_simple(static_cast<int>(now.size()), now.data(), limit.data()), H5Sclose,
               "cannot make a dataspace");
}

node scalar() { return owned(H5Screate(H5S_SCALAR), H5Sclose, "cannot make a dataspace"); }

// Readers list variables and attributes in the order in which they were made.
void track_order(node const& creation) {
  checked(H5Pset_link_creation_order(creation.id(), H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED),
          "cannot track the order of links");
}

void set_attribute(node const& of, char const* name, hid_t type, void const* value) {
  auto const space = scalar();
  auto const what = std::string("cannot write the attribute ") + name;
  auto attribute = owned(H5Acreate2(of.id(), name, type, space.id(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose, what);
  checked(H5Awrite(attribute.id(), type, value), what);
}

node create_dataset(node const& group, std::string const& name, hid_t type, node const& space, hid_t creation) {
  return owned(H5Dcreate2(group.id(), name.c_str(), type, space.id(), H5P_DEFAULT, creation, H5P_DEFAULT), H5Dclose,
               "cannot make the dataset " + name);
}

node create_checksummed(node const& group, std::string const& name, shape const& s, meaning const& m, hid_t type,
                        void const* fill) {
  auto const creation = property_list(H5P_DATASET_CREATE);
  std::vector<hsize_t> const chunk(s.chunk.begin(), s.chunk.end());
  checked(H5Pset_chunk(creation.id(), static_cast<int>(chunk.size()), chunk.data()),
          "cannot set the chunks of " + name);
  checked(H5Pset_fletcher32(creation.id()), "cannot set the checksum of " + name);
  if (fill != nullptr) checked(H5Pset_fill_value(creation.id(), type, fill), "cannot set the fill value of " + name);
  auto dataset = create_dataset(group, name, type, dataspace(s.size, &s.most_rows), creation.id());
  set_attribute(dataset, "long_name", m.long_name);
  set_attribute(dataset, "units", m.units);
  if (fill != nullptr) set_attribute(dataset, "_FillValue", type, fill);
  return dataset;
}

void write_block(node const& dataset, std::vector<std::uint64_t> const& start, std::vector<std::uint64_t> const& count,
                 hid_t type, void const* values) {
  auto const file_space = owned(H5Dget_space(dataset.id()), H5Sclose, "cannot write a dataset");
  std::vector<hsize_t> const from(start.begin(), start.end()), extent(count.begin(), count.end());
  checked(H5Sselect_hyperslab(file_space.id(), H5S_SELECT_SET, from.data(), nullptr, extent.data(), nullptr),
          "cannot write a dataset");
  auto const memory_space = dataspace(count, nullptr);
  checked(H5Dwrite(dataset.id(), type, memory_space.id(), file_space.id(), H5P_DEFAULT, values),
          "cannot write a dataset");
}

// What holds for every use of HDF5.
void settle() {
  // HDF5 crashes while it tidies up at exit if a file could not be closed, as on a full disk. All that is open here is
  // closed by its owner, so there is nothing to tidy.
  [[maybe_unused]] static auto const no_tidying = H5dont_atexit();
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); // errors are thrown, not printed
}

node file_access() {
  auto access = property_list(H5P_FILE_ACCESS);
#if H5_VERSION_GE(1, 10, 7)
  checked(H5Pset_file_locking(access.id(), true, true),
          "cannot set the file locking"); // the second: go on where there are no locks
#endif
  return access;
}

} // namespace

node& node::operator=(node&& other) noexcept {
  std::swap(id_, other.id_);
  std::swap(close_, other.close_);
  return *this;
}

node::~node() {
  if (id_ >= 0) close_(id_);
}

void node::close() {
  if (id_ >= 0) checked(close_(std::exchange(id_, -1)), "cannot write what is left");
}

node create_file(std::filesystem::path const& path) {
  settle();
  auto const creation = property_list(H5P_FILE_CREATE), access = file_access();
  track_order(creation);
  return owned(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.id(), access.id()), H5Fclose,
               "cannot make " + path.string());
}

node create_group(node const& parent, std::string const& name) {
  auto const creation = property_list(H5P_GROUP_CREATE);
  track_order(creation);
  return owned(H5Gcreate2(parent.id(), name.c_str(), H5P_DEFAULT, creation.id(), H5P_DEFAULT), H5Gclose,
               "cannot make the group " + name);
}

void set_attribute(node const& of, char const* name, std::string_view text) {
  auto const type = text_type();
  std::string const copy(text);
  char const* const pointer = copy.c_str();
  set_attribute(of, name, type.id(), &pointer);
}

void set_attribute(node const& of, char const* name, std::int64_t value) {
  set_attribute(of, name, H5T_NATIVE_INT64, &value);
}

shape fixed(std::vector<std::uint64_t> size) {
  auto const rows = size[0];
  return {size, rows, size};
}

node create_numbers(node const& group, std::string const& name, shape const& s, meaning const& m, std::int64_t fill) {
  return create_checksummed(group, name, s, m, H5T_NATIVE_INT64, &fill);
}

node create_numbers(node const& group, std::string const& name, shape const& s, meaning const& m, double fill) {
  return create_checksummed(group, name, s, m, H5T_NATIVE_DOUBLE, &fill);
}

node create_coordinate(node const& group, std::string const& name, shape const& s, meaning const& m) {
  auto coordinate = create_checksummed(group, name, s, m, H5T_NATIVE_INT64, nullptr);
  make_scale(coordinate, name);
  return coordinate;
}

void set_rows(node const& dataset, std::vector<std::uint64_t> const& size) {
  std::vector<hsize_t> const extent(size.begin(), size.end());
  checked(H5Dset_extent(dataset.id(), extent.data()), "cannot extend a dataset");
}

void write(node const& dataset, std::vector<std::uint64_t> const& start, std::vector<std::uint64_t> const& count,
           std::span<std::int64_t const> values) {
  write_block(dataset, start, count, H5T_NATIVE_INT64, values.data());
}

void write(node const& dataset, std::vector<std::uint64_t> const& start, std::vector<std::uint64_t> const& count,
           std::span<double const> values) {
  write_block(dataset, start, count, H5T_NATIVE_DOUBLE, values.data());
}

node write_texts(node const& group, std::string const& name, std::span<std::string const> texts,
                 std::string_view long_name) {
  auto const type = text_type();
  auto dataset = create_dataset(group, name, type.id(), dataspace({texts.size()}, nullptr), H5P_DEFAULT);
  std::vector<char const*> pointers;
  for (auto const& text : texts) pointers.push_back(text.c_str());
  checked(H5Dwrite(dataset.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, pointers.data()), "cannot write " + name);
  set_attribute(dataset, "long_name", long_name);
  return dataset;
}

node write_text(node const& group, std::string const& name, std::string_view text, std::string_view long_name) {
  auto const type = text_type();
  auto dataset = create_dataset(group, name, type.id(), scalar(), H5P_DEFAULT);
  std::string const copy(text);
  char const* const pointer = copy.c_str();
  checked(H5Dwrite(dataset.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, &pointer), "cannot write " + name);
  set_attribute(dataset, "long_name", long_name);
  return dataset;
}

node create_dimension(node const& group, std::string const& name, std::uint64_t size) {
  // Without values: the type is netCDF's choice, and late allocation leaves no byte of it in the file.
  auto dataset = create_dataset(group, name, H5T_IEEE_F32BE, dataspace({size}, nullptr), H5P_DEFAULT);
  char mark[128]; // readers take this sentence, full stop included, for "has no coordinate"
  std::snprintf(mark, sizeof mark, "This is a netCDF dimension but not a netCDF variable.%10d", static_cast<int>(size));
  make_scale(dataset, mark);
  return dataset;
}

void make_scale(node const& coordinate, std::string const& name) {
  checked(H5DSset_scale(coordinate.id(), name.c_str()), "cannot make a scale of " + name);
}

void attach_scales(node const& dataset, std::span<node const* const> scales) {
  for (unsigned axis = 0; axis < scales.size(); ++axis)
    checked(H5DSattach_scale(dataset.id(), scales[axis]->id(), axis), "cannot attach a scale");
}

namespace {

constexpr hsize_t most_values = 1 << 20;

// For HDF5's iterations: adds the name to the list.
template <class Info>
herr_t take_name(hid_t, char const* name, Info const*, void* names) {
  static_cast<std::vector<std::string>*>(names)->emplace_back(name);
  return 0;
}

item::kind kind_of(node const& type) {
  switch (H5Tget_class(type.id())) {
  case H5T_INTEGER: return item::kind::integers;
  case H5T_FLOAT: return item::kind::reals;
  case H5T_STRING: return H5Tis_variable_str(type.id()) > 0 ? item::kind::texts : item::kind::other;
  default: return item::kind::other;
  }
}

std::vector<std::uint64_t> size_of(node const& space) {
  std::vector<hsize_t> size(static_cast<std::size_t>(checked(H5Sget_simple_extent_ndims(space.id()), "no extent")));
  checked(H5Sget_simple_extent_dims(space.id(), size.data(), nullptr), "no extent");
  return {size.begin(), size.end()};
}

bool is_single(node const& space) { return H5Sget_simple_extent_type(space.id()) == H5S_SCALAR; }

// A single text, taken by `read` into a pointer that HDF5 allocates.
template <class Read>
std::string taken_text(Read&& read, std::string const& what) {
  char* text = nullptr;
  checked(read(text_type().id(), &text), "cannot read " + what);
  std::string copy(text != nullptr ? text : "");
  H5free_memory(text);
  return copy;
}

void read_attribute(node const& of, std::string const& name, item& out) {
  auto const attribute = owned(H5Aopen(of.id(), name.c_str(), H5P_DEFAULT), H5Aclose, "cannot read " + name);
  auto const type = owned(H5Aget_type(attribute.id()), H5Tclose, "cannot read " + name);
  if (!is_single(owned(H5Aget_space(attribute.id()), H5Sclose, "cannot read " + name))) return;
  if (kind_of(type) == item::kind::texts)
    out.text_attributes[name] = taken_text([&](hid_t as, void* to) { return H5Aread(attribute.id(), as, to); }, name);
  if (kind_of(type) == item::kind::integers)
    checked(H5Aread(attribute.id(), H5T_NATIVE_INT64, &out.number_attributes[name]), "cannot read " + name);
}

void read_dataset(node const& dataset, std::string const& name, item& out) {
  auto const type = owned(H5Dget_type(dataset.id()), H5Tclose, "cannot read " + name);
  auto const space = owned(H5Dget_space(dataset.id()), H5Sclose, "cannot read " + name);
  out.what = kind_of(type);
  out.size = size_of(space);
  if (out.what == item::kind::texts && is_single(space))
    out.text = taken_text(
        [&](hid_t as, void* to) { return H5Dread(dataset.id(), as, H5S_ALL, H5S_ALL, H5P_DEFAULT, to); }, name);
  if (out.what == item::kind::integers && out.size.size() == 1 && out.size[0] <= most_values) {
    out.values.resize(out.size[0]);
    checked(H5Dread(dataset.id(), H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, out.values.data()),
            "cannot read " + name);
  }
}

item read_item(node const& file, std::string const& path) {
  item out;
  auto const object =
      owned(H5Oopen(file.id(), path.empty() ? "/" : path.c_str(), H5P_DEFAULT), H5Oclose, "cannot open " + path);
  auto const is = H5Iget_type(object.id());
  if (is == H5I_GROUP) out.what = item::kind::group;
  if (is == H5I_DATASET) read_dataset(object, path, out);
  std::vector<std::string> names;
  checked(H5Aiterate2(object.id(), H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, take_name<H5A_info_t>, &names),
          "cannot list the attributes of " + path);
  for (auto const& name : names) read_attribute(object, name, out);
  return out;
}

} // namespace

std::map<std::string, item> read_items(std::filesystem::path const& path) {
  settle();
  auto const access = file_access();
  auto const file = owned(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.id()), H5Fclose, "cannot open it");
  std::vector<std::string> names{""};
  checked(H5Lvisit(file.id(), H5_INDEX_NAME, H5_ITER_NATIVE, take_name<H5L_info_t>, &names), "cannot list its items");
  std::map<std::string, item> items;
  for (auto const& name : names) items[name] = read_item(file, name);
  return items;
}

} // namespace plateau::h5
