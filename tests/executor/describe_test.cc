// Modules are described in text by explain() and drawn by dot().
#include "executor/describe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <stdexcept>

#include "tests/executor/test_operations.h"

namespace coppice::executor {
namespace {

constexpr std::string_view kText = R"(
func @double(%x: i32) -> i32 {
  %y = add.i32 (%x, %x)
  return %y
}
func @main(%n: i32, %e: event) -> (i32, i32) {
  %noted = note.i32 "a \"note\"\n\\ of {it}" (%n)
  %done = stream.done (%e)
  %ready = after.i32 (%done, %noted)
  %twice = repeat @double, 4 (%n, %ready)
  %unused = call @double (%n)
  return %twice, %twice
})";

struct Described : Program {
  Described() : Program("func @f() { return }") {
    registry.add("after.i32", [](const Chain&, int32_t x) { return x; }, {.run = Run::kCompute, .cost = 7});
    module = LoadedModule::load(parse(kText, "test.graph"), registry);
  }
};

TEST(Explain, TellsOfEveryRegisterAndOperation) {
  Described p;
  EXPECT_EQ(explain(*p.module), R"(@double(%x: i32) -> i32

  register  type  set by      uses  used by
  %x        i32   the caller  3     1 add.i32
  %y        i32   1 add.i32   2     return

     operation     line  runs    priority  waits for
  1  %y = add.i32  3     inline  1         %x


@main(%n: i32, %e: event) -> (i32, i32)

  register  type   set by         uses  used by
  %n        i32    the caller     4     1 note.i32, 4 repeat, 5 call
  %e        event  the caller     2     2 stream.done
  %noted    i32    1 note.i32     2     3 after.i32
  %done     chain  2 stream.done  2     3 after.i32
  %ready    i32    3 after.i32    2     4 repeat
  %twice    i32    4 repeat       3     return
  %unused   i32    5 call         1     nobody

     operation                                   line  runs     priority  waits for
  1  %noted = note.i32 "a \"note\"\n\\ of {it}"  7     inline   9         %n
  2  %done = stream.done                         8     inline   9         %e on the stream
  3  %ready = after.i32                          9     compute  8         %done, %noted
  4  %twice = repeat @double, 4                  10    compute  1         nothing; takes %n, %ready as they come
  5  %unused = call @double                      11    inline   1         nothing; takes %n as they come
)");
}

TEST(Explain, AFunctionWithoutAnythingIsItsSignature) {
  Program p("func @f() { return }");
  EXPECT_EQ(explain(p.module->function("f")), "@f()\n");
}

TEST(Explain, CutsListsOfMoreThanEightItems) {
  Program p("func @f() { sum [1, 2, 3, 4, 5, 6, 7, 8] sum [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] return }", nullptr,
            [](Registry& registry) { registry.add("sum", [](Constant<std::span<const int64_t>>) {}); });
  const std::string text = explain(*p.module);
  EXPECT_NE(text.find("sum [1, 2, 3, 4, 5, 6, 7, 8] "), std::string::npos) << text;
  EXPECT_NE(text.find("sum [1, 2, 3, 4, 5, 6, 7, 8, … 2 more] "), std::string::npos) << text;
}

// A reader of what dot() may write: statements of nodes, edges, subgraphs and
// attributes, each with a ';' or a '}'.
class DotReader {
 public:
  explicit DotReader(std::string_view text) : text_(text) {
    expect("digraph"), id();
    block("");
    if (at_ != text_.size()) throw std::runtime_error("text behind the graph");
  }
  std::map<std::string, std::map<std::string, std::string>> nodes;  // attributes; "in": the subgraph
  struct Edge {
    std::string from, to;
    std::map<std::string, std::string> attributes;
  };
  std::vector<Edge> edges;
  std::map<std::string, std::string> clusters;  // labels

 private:
  std::string_view peek() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    if (at_ == text_.size()) return {};
    const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
    size_t end = at_ + 1;
    if (is_word(text_[at_])) {
      while (end < text_.size() && is_word(text_[end])) ++end;
    } else if (text_[at_] == '"') {
      while (text_.at(end) != '"') end += text_[end] == '\\' ? 2 : 1;
      ++end;
    } else if (text_.substr(at_, 2) == "->") {
      ++end;
    }
    return text_.substr(at_, end - at_);
  }
  std::string take() {
    const std::string token(peek());
    at_ += token.size();
    return token;
  }
  void expect(std::string_view wanted) {
    if (const std::string token = take(); token != wanted)
      throw std::runtime_error(std::string(wanted) + " expected, not " + token);
  }
  std::string id() {
    const std::string token = take();
    if (token.empty() || (token[0] != '"' && token[0] != '_' && std::isalnum(token[0]) == 0))
      throw std::runtime_error("a name expected, not " + token);
    if (token[0] != '"') return token;
    std::string text;
    for (size_t i = 1; i + 1 < token.size(); ++i) text += token[i] == '\\' ? token[++i] : token[i];
    return text;
  }
  std::map<std::string, std::string> attributes() {
    std::map<std::string, std::string> read;
    if (peek() != "[") return read;
    do {
      take();
      const std::string name = id();
      expect("=");
      read[name] = id();
    } while (peek() == ",");
    expect("]");
    return read;
  }
  void block(const std::string& cluster) {
    expect("{");
    for (; peek() != "}"; statement(cluster)) {
      if (peek().empty()) throw std::runtime_error("the graph does not end");
    }
    take();
    peek();
  }
  void statement(const std::string& cluster) {
    const std::string name = id();
    if (name == "subgraph") return block(id());
    if (peek() == "=") {
      take();
      const std::string value = id();
      if (name == "label") clusters[cluster] = value;
    } else if (peek() == "->") {
      take();
      std::string to = id();
      edges.push_back({name, std::move(to), attributes()});
    } else if (name == "node" || name == "edge") {
      attributes();
    } else {
      nodes[name] = attributes();
      nodes[name]["in"] = cluster;
    }
    expect(";");
  }

  std::string_view text_;
  size_t at_ = 0;
};

TEST(Dot, DrawsAClusterPerFunctionAndAnEdgePerUse) {
  Described p;
  const DotReader graph(dot(*p.module));
  EXPECT_EQ(graph.clusters,
            (std::map<std::string, std::string>{{"cluster_0", "@double"}, {"cluster_1", "@main"}}));
  EXPECT_EQ(graph.nodes.size(), 2u + 2 + 1 + 5);
  // Uses of registers in the text, those by `return` with them, and two calls.
  EXPECT_EQ(graph.edges.size(), 3u + 9 + 2);
  for (const auto& edge : graph.edges) {
    ASSERT_TRUE(graph.nodes.contains(edge.from)) << edge.from;
    ASSERT_TRUE(graph.nodes.contains(edge.to)) << edge.to;
    if (edge.attributes.contains("lhead")) {
      EXPECT_EQ(edge.attributes.at("style"), "dashed");
      EXPECT_EQ(edge.attributes.at("lhead"), "cluster_0");
      EXPECT_EQ(graph.nodes.at(edge.to).at("in"), "cluster_0");
      EXPECT_EQ(graph.nodes.at(edge.from).at("in"), "cluster_1");
    } else {
      EXPECT_EQ(graph.nodes.at(edge.from).at("in"), graph.nodes.at(edge.to).at("in"));
    }
  }
}

TEST(Dot, LabelsAreTheTextEscaped) {
  Described p;
  const DotReader graph(dot(*p.module));
  EXPECT_EQ(graph.nodes.at("f1_op1").at("label"), R"(note.i32 "a \"note\"\n\\ of {it}")");
  EXPECT_EQ(graph.nodes.at("f1_op4").at("label"), "repeat @double, 4");
  const auto to_done = std::find_if(graph.edges.begin(), graph.edges.end(),
                                    [](const auto& edge) { return edge.to == "f1_op2"; });
  ASSERT_NE(to_done, graph.edges.end());
  EXPECT_EQ(to_done->from, "f1_entry");
  EXPECT_EQ(to_done->attributes.at("label"), "%e: event");
}

TEST(Dot, OfOneFunctionLeavesOutTheOthers) {
  Described p;
  const DotReader graph(dot(p.module->function("main")));
  EXPECT_EQ(graph.clusters.size(), 1u);
  EXPECT_EQ(std::count_if(graph.edges.begin(), graph.edges.end(),
                          [](const auto& edge) { return edge.attributes.contains("lhead"); }),
            0);
}

}  // namespace
}  // namespace coppice::executor
