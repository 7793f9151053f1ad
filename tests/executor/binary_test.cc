// executor/binary.h: round trips, the layout, and that nothing else than an encoded module is taken.
#include "executor/binary.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <limits>

#include "core/error.h"
#include "core/hash.h"
#include "executor/text.h"

namespace coppice::executor {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::string_view kText = R"(func @f(%x: i32, %y: tensor.f32) -> (i32, i32) {
  %a, %b = op true, false, 0, -1, 9223372036854775807, -9223372036854775808, 1.5, -inf (%x, %y, %x)
  %c = op "", "text", "a text that has more than thirty-two bytes", @g, @f (%b)
  return %c, %c
}
func @g() {
  return
}
)";

Module some_module() { return parse(kText, "f.cpx"); }

// Returns a module in a few bytes.
Bytes small_file() { return encode(parse("func @f(%x: t) -> t { %y = op 1, \"s\" (%x) return %y }", "f")); }

std::string error_of(const Bytes& bytes) {
  try {
    decode(bytes, "f.cpb");
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kDataLoss) << e.what();
    return e.what();
  }
  return "no error";
}

// A file with a right header in front of this payload.
Bytes file_of(const Bytes& payload) {
  Bytes file = encode(Module{});
  file.resize(kBinaryHeaderBytes);
  const uint64_t words[] = {payload.size(), hash64(payload)};
  std::memcpy(file.data() + 8, words, sizeof(words));
  file.insert(file.end(), payload.begin(), payload.end());
  return file;
}

Bytes bytes_of(std::initializer_list<int> values) {
  Bytes bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

TEST(Binary, DecodesWhatItEncodes) {
  const Module m = some_module();
  EXPECT_EQ(decode(encode(m), "f.cpb"), m);
  EXPECT_EQ(encode(decode(encode(m), "f.cpb")), encode(m));
  EXPECT_EQ(decode(encode(Module{}), ""), Module{});
}

TEST(Binary, DecodesListsAndRefusesEmptyOnesOfAnotherKind) {
  const Module m = parse(
      "func @f() { op [], [1, -300], [-0.0, 2.5], [\"a\", \"a longer string, of more than 32 bytes\"] return "
      "}");
  EXPECT_EQ(decode(encode(m), ""), m);
  // The kind of the empty list, behind the number of attributes; a name of 6 bytes would be found before it.
  const Bytes empty = encode(parse("func @f() { op [] return }", "f"));
  Bytes payload(empty.begin() + kBinaryHeaderBytes, empty.end());
  const std::byte list[] = {std::byte{1}, std::byte{6}, std::byte{0}};
  const auto at = std::search(payload.begin(), payload.end(), std::begin(list), std::end(list));
  ASSERT_NE(at, payload.end());
  for (const int kind : {7, 8}) {
    at[1] = static_cast<std::byte>(kind);
    EXPECT_EQ(error_of(file_of(payload)),
              "f.cpb: malformed: op has an empty list that is not one of integers");
  }
}

TEST(Binary, RealsKeepTheirBits) {
  Module m = parse("func @f() { op 0.0 return }");
  for (const uint64_t bits : std::initializer_list<uint64_t>{0x8000000000000000, kPlainNan,
                                                             0xfff8000000000001, 0x7ff0000000000001, 1}) {
    m.functions[0].operations[0].attributes[0] = std::bit_cast<double>(bits);
    const Module back = decode(encode(m), "");
    EXPECT_EQ(std::bit_cast<uint64_t>(std::get<double>(back.functions[0].operations[0].attributes[0])), bits);
  }
}

TEST(Binary, HasTheLayoutThatTheHeaderDraws) {
  const Bytes file = encode(parse("func @f(%x: t) -> t { %y = op -2 (%x) return %y }", "f"));
  const Bytes payload = bytes_of({
      5, 1, 'f', 1, 't', 1,  'x', 1, 'y', 2,  'o', 'p',  // strings 0 to 4
      0,                                                 // file
      1, 0,                                              // one function, its name
      1, 2, 1,   2,                                      // types
      2, 4, 2,   1, 0,   6,  2,   0,                     // registers: %x used twice, by operation 0; %y
      1, 8, 1,   2, 3,   1,  0,   1, 1,   28,            // op, -2, (%x), one result, at 1:28
      1, 1, 1,   6, 1,   39,                             // returns, positions
  });
  EXPECT_EQ(file, file_of(payload));
  EXPECT_EQ(std::memcmp(file.data(), "CPEX\2\0\0\0\53\0\0\0\0\0\0\0", 16), 0);
}

TEST(Binary, RefusesToEncodeWhatCheckRefuses) {
  Module m = some_module();
  m.functions[0].operations[0].arguments[0] = 99;
  EXPECT_THROW(encode(m), Error);
}

TEST(Binary, RefusesEveryTruncation) {
  const Bytes file = encode(some_module());
  for (size_t size = 0; size < file.size(); ++size) {
    const std::string error = error_of(Bytes(file.begin(), file.begin() + size));
    EXPECT_EQ(error.starts_with("f.cpb: "), true) << size << ": " << error;
    EXPECT_NE(error.find(size < 4 ? "no module" : "truncated"), error.npos) << size << ": " << error;
  }
}

TEST(Binary, RefusesEveryFlippedBit) {
  const Bytes file = encode(some_module());
  for (size_t bit = 0; bit < 8 * file.size(); ++bit) {
    Bytes flipped = file;
    flipped[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    EXPECT_NE(error_of(flipped), "no error") << bit;
  }
}

// With the checksum made right again, a payload is refused, or is the one encoding of another module.
TEST(Binary, TakesNoOtherBytesEvenWithARightChecksum) {
  const Bytes file = small_file();
  int n_taken = 0;
  const auto try_payload = [&](const Bytes& payload) {
    const Bytes changed = file_of(payload);
    if (error_of(changed) != "no error") return;
    ++n_taken;
    EXPECT_EQ(encode(decode(changed, "")), changed);
  };
  const Bytes payload(file.begin() + kBinaryHeaderBytes, file.end());
  for (size_t at = 0; at < payload.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      Bytes changed = payload;
      changed[at] = static_cast<std::byte>(value);
      try_payload(changed);
      changed = payload;
      changed.insert(changed.begin() + at, static_cast<std::byte>(value));
      try_payload(changed);
    }
    Bytes shorter = payload;
    shorter.erase(shorter.begin() + at);
    try_payload(shorter);
    EXPECT_NE(error_of(file_of(Bytes(payload.begin(), payload.begin() + at))), "no error") << at;
  }
  EXPECT_GT(n_taken, 300);  // names and positions that are other ones, and right
}

struct Refused {
  Bytes file;
  const char* error;
};

TEST(Binary, SaysWhatIsWrong) {
  const Bytes right = small_file();
  const auto with = [&](size_t at, int value) {
    Bytes file = right;
    file[at] = static_cast<std::byte>(value);
    return file;
  };
  Bytes longer = right, shorter = right, header_only = right;
  longer.push_back(std::byte{0});
  shorter.pop_back();
  header_only.resize(20);
  const Refused refused[] = {
      {{}, "f.cpb: no module in binary form: expected 'CPEX' at its start"},
      {with(0, 'c'), "f.cpb: no module in binary form: expected 'CPEX' at its start"},
      {header_only, "f.cpb: truncated: 20 bytes, and the header has 24"},
      {with(4, 1), "f.cpb: version 1 of the binary form, and this program reads version 2: make it anew"},
      {shorter, "f.cpb: truncated: 46 bytes behind the header, which says 47"},
      {longer, "f.cpb: too long: 48 bytes behind the header, which says 47"},
      {with(30, 'X'), "f.cpb: altered: its bytes do not have its checksum"},
      {file_of({}), "f.cpb: malformed at byte 24: the payload ends here, and something must follow"},
      {file_of(bytes_of({5, 0})), "f.cpb: malformed at byte 25: a list that is longer than the payload"},
      {file_of(bytes_of({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})),
       "f.cpb: malformed at byte 34: a list that is longer than the payload"},
      {file_of(bytes_of({0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2})),
       "f.cpb: malformed at byte 34: a number of more than 64 bits"},
      {file_of(bytes_of({0x81, 0})), "f.cpb: malformed at byte 26: a number with needless zeros"},
      {file_of(bytes_of({1, 0, 0, 0, 0})),
       "f.cpb: malformed at byte 28: more follows behind the last function"},
      {file_of(bytes_of({2, 0, 0, 0, 0})), "f.cpb: malformed at byte 27: the table has a string twice"},
      {file_of(bytes_of({2, 0, 1, 'a', 0, 0})),
       "f.cpb: malformed at byte 30: the table has a string that is not used"},
      {file_of(bytes_of({2, 0, 1, 'a', 2, 0})),
       "f.cpb: malformed at byte 29: a string out of the table's order"},
      {file_of(bytes_of({0, 0, 0})), "f.cpb: malformed at byte 26: a string out of the table's order"},
      {file_of(bytes_of({0, 3, 'a', 0})), "f.cpb: malformed at byte 26: a short string outside of the table"},
      {file_of(bytes_of({0, 99, 'a', 0})),
       "f.cpb: malformed at byte 26: a string that is longer than the payload"},
  };
  for (const Refused& r : refused) EXPECT_EQ(error_of(r.file), r.error);
  Bytes table = bytes_of({1, 33});
  table.insert(table.end(), 33 + 2, std::byte{'a'});
  EXPECT_EQ(error_of(file_of(table)),
            "f.cpb: malformed at byte 59: the table has a string that is too long for it");
}

// The payload of the layout's test with one byte changed.
TEST(Binary, SaysWhatIsWrongWithinAFunction) {
  const auto with = [](size_t at, int value) {
    Bytes payload =
        bytes_of({5, 1, 'f', 1, 't', 1, 'x', 1, 'y', 2, 'o', 'p', 0, 1, 0, 1, 2, 1,  2,  //
                  2, 4, 2,   1, 0,   6, 2,   0, 1,   8, 1,   2,   3, 1, 0, 1, 1, 28, 1, 1, 1, 6, 1, 39});
    payload[at] = static_cast<std::byte>(value);
    return file_of(payload);
  };
  ASSERT_EQ(error_of(with(0, 5)), "no error");
  const Refused refused[] = {
      {with(21, 3), "f.cpb: malformed: register %x has use count 3, and its uses in function @f make 2"},
      {with(23, 1), "f.cpb: malformed: the used-by record of %x lacks the use by op, or is not ascending"},
      {with(30, 10), "f.cpb: malformed at byte 55: there is no attribute of kind 10"},
      {with(30, 3), "f.cpb: malformed at byte 67: the payload ends here, and something must follow"},
      {with(33, 2), "f.cpb: malformed: op names register number 2, and function @f has 2"},
      {with(34, 2), "f.cpb: malformed at byte 59: an operation sets more registers than there are"},
      {with(34, 0), "f.cpb: malformed: register %y is never set in function @f"},
      {with(8, '-'),
       "f.cpb: malformed: \"-\" is no name of a register: expected letters, digits, '_' and '.'"},
  };
  for (const Refused& r : refused) EXPECT_EQ(error_of(r.file), r.error);
}

}  // namespace
}  // namespace coppice::executor
