// The reference: what a kernel's handles and places are when the host compiler compiles it, unoptimised, for
// plain arrays.
//
// A field is an array over the tree's whole domain, the last axis fastest, with zeros in cells that are not
// active. A launch calls the kernel once per active cell, element or item, one after another.
#pragma once
#define KERNEL_FUZZ_REFERENCE
#include "tests/kernel_fuzz/prelude.h"

namespace fuzz_reference {

// A kernel changes a tree so, in the runner's own model of it. Coordinates have three axes, the leading
// ones 0.
class Changes {
 public:
  virtual ~Changes() = default;
  // Lists, of a dynamic node.
  virtual uint32_t append(const int32_t* coord, const void* value) = 0;
  virtual void set_element(const int32_t* coord, int64_t index, const void* value) = 0;
  virtual uint32_t length(const int32_t* coord) const = 0;
  virtual const void* element(const int32_t* coord, int64_t index) const = 0;  // null where there is none
  // Cells of any other.
  virtual void set(const int32_t* coord, const void* value) = 0;
  virtual void activate(const int32_t* coord) = 0;
  virtual void deactivate(const int32_t* coord) = 0;
  virtual bool is_active(const int32_t* coord) const = 0;
};

// One field; the arrays belong to the runner.
struct Field {
  unsigned char* values;
  int32_t begin[3];            // of the domain, leading axes that the tree lacks 0
  int32_t extent[3];           // 1 where the tree lacks the axis
  Changes* changes = nullptr;  // instead of values
};

// One run of a kernel sees this besides its handles.
struct At {
  int32_t coord[3];         // of the cell, of the block's first cell, or of the element's list
  int64_t index;            // of an element in its list, or of a range's item
  int64_t number;           // of an element among those of all lists
  int32_t block_extent[3];  // cells of a block per axis
};

template <class T>
T* find(const Field& f, int32_t x, int32_t y, int32_t z) {
  const int32_t c[3] = {x - f.begin[0], y - f.begin[1], z - f.begin[2]};
  for (int d = 0; d < 3; ++d)
    if (c[d] < 0 || c[d] >= f.extent[d]) return nullptr;
  return reinterpret_cast<T*>(f.values) + (static_cast<int64_t>(c[0]) * f.extent[1] + c[1]) * f.extent[2] +
         c[2];
}

template <int D>
struct Place {
  const At* at;
  int32_t coord(int axis) const { return at->coord[3 - D + axis]; }
};
template <int D>
struct Cell : Place<D> {
  static Cell make(const At& at) { return {{&at}}; }
};
template <int D>
struct Block : Place<D> {
  static Block make(const At& at) { return {{&at}}; }
};
template <int D>
struct Entry : Place<D> {
  uint32_t index;
  static Entry make(const At& at) { return {{&at}, static_cast<uint32_t>(at.index)}; }
};
struct Item {
  int64_t index;
  operator int64_t() const { return index; }
};
// In the reference a team has one lane.
struct Team {
  int64_t index;
  int lane() const { return kPlanted == kPlantedInBarrier; }
  int lanes() const { return 1; }
  void barrier() const {}
};
template <int D, int kBytes>
struct BlockTeam : Block<D> {
  static BlockTeam make(const At& at) {
    static int64_t fast_memory[kBytes / sizeof(int64_t)];
    return {Block<D>::make(at), reinterpret_cast<unsigned char*>(fast_memory)};
  }
  unsigned char* fast;
  int lane() const { return 0; }
  int lanes() const { return 1; }
  void barrier() const {}
};
using Cell1 = Cell<1>;
using Cell2 = Cell<2>;
using Cell3 = Cell<3>;
using Block1 = Block<1>;
using Block2 = Block<2>;
using Block3 = Block<3>;
using Entry1 = Entry<1>;
using Entry2 = Entry<2>;
using Entry3 = Entry<3>;

struct Point {};
template <int R>
struct Star {};
template <int R>
struct Box {};

// A block's values by their position in it, the last axis fastest.
template <class T>
struct BlockValues {
  const Field* field;
  const At* at;
  int32_t away[3] = {};  // in blocks
  T* address(int64_t i) const {
    const int32_t(&e)[3] = at->block_extent;
    return find<T>(*field, at->coord[0] + away[0] * e[0] + static_cast<int32_t>(i / e[2] / e[1]),
                   at->coord[1] + away[1] * e[1] + static_cast<int32_t>(i / e[2] % e[1]),
                   at->coord[2] + away[2] * e[2] + static_cast<int32_t>(i % e[2]));
  }
  T& operator[](int64_t i) const { return *address(i); }
};
// Zeros where there is no block.
template <class T>
struct NeighbourValues : BlockValues<T> {
  T operator[](int64_t i) const {
    const T* p = this->address(i);
    return p == nullptr || kPlanted == kPlantedInNeighbours ? T{} : *p;
  }
};

template <class T>
struct Handle {
  const Field* field;
  template <int D>
  T* own(const Cell<D>& cell) const {
    const int32_t(&c)[3] = cell.at->coord;
    return find<T>(*field, c[0], c[1], c[2]);
  }
  // Elements of all lists lie one behind the other.
  template <int D>
  T* own(const Entry<D>& entry) const {
    return reinterpret_cast<T*>(field->values) + entry.at->number;
  }
  template <int D>
  BlockValues<T> data(const Block<D>& block) const {
    return {field, block.at};
  }
  T near(const At* at, int dx, int dy, int dz) const {
    const T* p = find<T>(*field, at->coord[0] + dx, at->coord[1] + dy, at->coord[2] + dz);
    return p == nullptr ? T{} : *p;
  }
};

template <class T, class Reach = Point>
struct Read : Handle<T> {
  template <class P>
  T operator[](const P& place) const {
    return *this->own(place);
  }
  T operator()(const Cell<1>& c, int dx) const { return this->near(c.at, 0, 0, dx); }
  T operator()(const Cell<2>& c, int dx, int dy) const { return this->near(c.at, 0, dx, dy); }
  T operator()(const Cell<3>& c, int dx, int dy, int dz) const { return this->near(c.at, dx, dy, dz); }
  template <int D>
  NeighbourValues<T> neighbour_data(const Block<D>& block, const int32_t (&d)[D]) const {
    return {{this->field, block.at, {D > 2 ? d[D - 3] : 0, D > 1 ? d[D - 2] : 0, d[D - 1]}}};
  }
  template <class From, int D>
  T at(const From&, const int32_t (&c)[D]) const {
    const T* p = find<T>(*this->field, D > 2 ? c[D - 3] : 0, D > 1 ? c[D - 2] : 0, c[D - 1]);
    return p == nullptr ? T{} : *p;
  }
};

template <class T>
struct Write : Handle<T> {
  struct Target {
    T* address;
    void operator=(const T& v) const { *address = v; }
  };
  template <class P>
  Target operator[](const P& place) const {
    return {this->own(place)};
  }
};

template <class T>
struct Update : Handle<T> {
  template <class P>
  T& operator[](const P& place) const {
    return *this->own(place);
  }
};

template <int D>
struct Axes {
  int32_t c[3];
  Axes(const int32_t (&given)[D]) : c{D > 2 ? given[D - 3] : 0, D > 1 ? given[D - 2] : 0, given[D - 1]} {}
};

template <class T>
struct Append : Handle<T> {
  template <class From, int D>
  void append(const From&, const int32_t (&c)[D], const T& v) const {
    if (kPlanted != kPlantedInAppend) this->field->changes->append(Axes<D>(c).c, &v);
  }
  template <class From, int D>
  void set(const From&, const int32_t (&c)[D], int64_t index, const T& v) const {
    this->field->changes->set_element(Axes<D>(c).c, index, &v);
  }
  template <class From, int D>
  uint32_t length(const From&, const int32_t (&c)[D]) const {
    return this->field->changes->length(Axes<D>(c).c);
  }
  template <class From, int D>
  T at(const From&, const int32_t (&c)[D], int64_t index) const {
    const void* found = this->field->changes->element(Axes<D>(c).c, index);
    return found == nullptr ? T{} : *static_cast<const T*>(found);
  }
};

template <class T>
struct Grow : Handle<T> {
  template <class From, int D>
  void set(const From&, const int32_t (&c)[D], const T& v) const {
    this->field->changes->set(Axes<D>(c).c, &v);
  }
  template <class From, int D>
  void activate(const From&, const int32_t (&c)[D]) const {
    this->field->changes->activate(Axes<D>(c).c);
  }
  template <class From, int D>
  void deactivate(const From&, const int32_t (&c)[D]) const {
    if (kPlanted != kPlantedInGrow) this->field->changes->deactivate(Axes<D>(c).c);
  }
  template <class From, int D>
  bool is_active(const From&, const int32_t (&c)[D]) const {
    return this->field->changes->is_active(Axes<D>(c).c);
  }
};

template <class T>
void add_to(T* p, T v) {
  *p = fuzz::add(*p, v);
}

template <class T, class Reach = Point>
struct Accumulate : Handle<T> {
  template <class From, int D>
  void add(const From& from, const int32_t (&c)[D], T v) const {
    if constexpr (std::is_same_v<Reach, Point>)
      add_to(find<T>(*this->field, D > 2 ? c[D - 3] : 0, D > 1 ? c[D - 2] : 0, c[D - 1]), v);
    else
      add_to(find<T>(*this->field, from.at->coord[0] + (D > 2 ? c[D - 3] : 0),
                     from.at->coord[1] + (D > 1 ? c[D - 2] : 0), from.at->coord[2] + c[D - 1]),
             v);
  }
};

}  // namespace fuzz_reference
