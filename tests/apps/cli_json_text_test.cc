// apps/cli/json_text.h and environment.h: any text becomes valid JSON, and every variable is documented.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "apps/cli/environment.h"
#include "apps/cli/json_text.h"

namespace coppice::cli {
namespace {

TEST(JsonString, QuotesAndEscapes) {
  EXPECT_EQ(json_string(""), "\"\"");
  EXPECT_EQ(json_string("plain / text"), "\"plain / text\"");
  EXPECT_EQ(json_string("a \"b\" c:\\d"), R"("a \"b\" c:\\d")");
  EXPECT_EQ(json_string(std::string_view("\n\t\x01\0\x7f", 5)), R"("\u000a\u0009\u0001\u0000\u007f")");
}

TEST(JsonString, KeepsUtf8AndReplacesWhatIsNone) {
  const std::string replacement = "\xef\xbf\xbd";
  for (const char* whole :
       {"\xc3\xa9", "\xe2\x82\xac", "\xed\x9f\xbf", "\xf0\x9f\x8c\xb3", "\xf4\x8f\xbf\xbf"})
    EXPECT_EQ(json_string(whole), std::string("\"") + whole + "\"");
  EXPECT_EQ(json_string("a\xff"
                        "b"),
            "\"a" + replacement + "b\"");
  EXPECT_EQ(json_string("\xc3"), "\"" + replacement + "\"") << "cut off";
  EXPECT_EQ(json_string("\xc0\xaf"), "\"" + replacement + replacement + "\"") << "overlong";
  EXPECT_EQ(json_string("\xe2\x82x"), "\"" + replacement + replacement + "x\"");
  EXPECT_EQ(json_string("\xed\xa0\x80"), "\"" + replacement + replacement + replacement + "\"")
      << "surrogate";
  EXPECT_EQ(json_string("\xf5\x80\x80\x80").size(), 2 + 4 * replacement.size()) << "above U+10FFFF";
}

TEST(EnvironmentVariables, AreAllInTheDocumentationAndInNoOtherPlace) {
  std::stringstream page;
  page << std::ifstream(std::string(COPPICE_SOURCE_DIR) + "/docs/environment.md").rdbuf();
  const std::string text = page.str();
  size_t at = 0;
  for (const EnvironmentVariable& variable : environment_variables()) {
    const size_t row = text.find("\n| `" + std::string(variable.name) + "` |");
    ASSERT_NE(row, std::string::npos) << variable.name;
    EXPECT_GT(row, at) << variable.name << " is not in the order of the page";
    at = row;
  }
  size_t rows = 0;
  for (size_t row = text.find("\n| `COPPICE_"); row != std::string::npos;
       row = text.find("\n| `COPPICE_", row + 1))
    ++rows;
  EXPECT_EQ(rows, environment_variables().size());
}

}  // namespace
}  // namespace coppice::cli
