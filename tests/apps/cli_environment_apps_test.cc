// The real program and its environment: `info --json` as another program reads it, COPPICE_LOG, COPPICE_DUMP
// and the kernel cache's variables.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>

#include "apps/cli/environment.h"
#include "tests/apps/run_outputs.h"
#include "tests/apps/run_program.h"

namespace coppice {
namespace {

namespace fs = std::filesystem;

class ProgramEnvironment : public testing::Test {
 protected:
  void SetUp() override { write_text(scene_, tiny_scene()); }

  ProgramResult run_scene(const std::map<std::string, std::string>& environment) {
    return run_program({"run", scene_, "-o", out_, "--frames", "0", "--overwrite"},
                       {.environment = environment});
  }
  // Returns what python3 prints when `script` runs with the JSON text as `d`.
  std::string python(const std::string& json, const std::string& script) {
    write_text(folder_ / "info.json", json);
    write_text(folder_ / "script.py",
               "import json, sys\nd = json.load(open(sys.argv[1], encoding='utf-8'))\n" + script);
    const std::string command =
        "python3 '" + (folder_ / "script.py") + "' '" + (folder_ / "info.json") + "' 2>&1";
    FILE* pipe = popen(command.c_str(), "r");
    std::string said;
    char buffer[4096];
    while (const size_t n = std::fread(buffer, 1, sizeof buffer, pipe)) said.append(buffer, n);
    EXPECT_EQ(pclose(pipe), 0) << said;
    return said;
  }

  TemporaryFolder folder_;
  std::string scene_ = folder_ / "tiny.toml";
  std::string out_ = folder_ / "out";
};

TEST_F(ProgramEnvironment, InfoIsJsonWithTheKeysThatProgramsRelyOn) {
  // A folder that needs escaping, and bytes that are no UTF-8.
  const std::string cache = (folder_ / "a \"quoted\"\\\nfolder \xff");
  const ProgramResult result = run_program({"info", "--json"}, {.environment = {{"COPPICE_CACHE_DIR", cache},
                                                                                {"COPPICE_CACHE_MAX_MB", "3"},
                                                                                {"COPPICE_LOG", "warning"}}});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(
      python(result.out, "print(' '.join(d))\n"),
      "version build compiler system glibc cpu threads cuda_driver cub egl ffmpeg assets llvm kernel_target "
      "kernel_target_features devices opengl mpi_plugin openvdb_plugin kernel_cache environment\n");
  EXPECT_EQ(python(result.out,
                   "c = d['kernel_cache']\n"
                   "print(sorted(c), c['entries'], c['bytes'], c['max_bytes'])\n"
                   "print(c['folder'].endswith('/a \"quoted\"\\\\\\nfolder \\ufffd'), "
                   "d['environment']['COPPICE_LOG'],\n"
                   "      d['environment']['COPPICE_DUMP'], type(d['threads']).__name__)\n"),
            "['bytes', 'entries', 'folder', 'max_bytes'] 0 0 3145728\nTrue warning None int\n");
  std::string names;
  for (const cli::EnvironmentVariable& variable : cli::environment_variables())
    names += std::string(variable.name) + " ";
  EXPECT_EQ(python(result.out, "print(*d['environment'], end=' ')\n"), names);
  EXPECT_EQ(python(result.out, "print(d['llvm'].split('.')[0], '+sse2' in d['kernel_target_features'])\n"),
            "19 True\n");
}

TEST_F(ProgramEnvironment, InfoForPeopleIsATable) {
  const ProgramResult result = run_program({"info"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_NE(result.out.find("\nkernel target "), std::string::npos);
  EXPECT_EQ(result.out.find("kernel target features"), std::string::npos);
  EXPECT_NE(run_program({"--help"}).out.find("COPPICE_CACHE_MAX_MB=N"), std::string::npos);
}

// A cache that cannot be written gives one line of each level but error.
TEST_F(ProgramEnvironment, LogsWhatItsLevelSays) {
  struct Row {
    const char* level;
    bool debug, info, warning;
  };
  for (const Row& row : {Row{"debug", true, true, true}, Row{"info", false, true, true},
                         Row{"", false, true, true}, Row{"warning", false, false, true},
                         Row{"error", false, false, false}, Row{"off", false, false, false}}) {
    const ProgramResult result =
        run_scene({{"COPPICE_LOG", row.level}, {"COPPICE_CACHE_DIR", "/proc/coppice"}});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err_has("\nkernel mpm."), row.debug) << row.level << "\n" << result.err;
    EXPECT_EQ(result.err_has("kernels: compiling"), row.info) << row.level << "\n" << result.err;
    EXPECT_EQ(result.err_has("warning: kernel cache: cannot write to /proc/coppice"), row.warning)
        << row.level << "\n"
        << result.err;
  }
}

TEST_F(ProgramEnvironment, ErrorsAreSaidWhateverIsLogged) {
  for (const char* level : {"error", "off"}) {
    expect_refused(run_program({"run", "no_such_scene"}, {.environment = {{"COPPICE_LOG", level}}}), 2,
                   {"no scene 'no_such_scene'"});
  }
}

TEST_F(ProgramEnvironment, RefusesBadValuesOnOneLine) {
  for (const char* level : {"loud", "DEBUG", "info ", "2"}) {
    const ProgramResult result = run_scene({{"COPPICE_LOG", level}});
    expect_refused(result, 2,
                   {"COPPICE_LOG must be debug, info, warning, error or off, not '" + std::string(level)});
    EXPECT_EQ(result.err_lines().size(), 1u);
  }
  for (const char* bound : {"-1", "lots"}) {
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"run", scene_, "-o", out_}, {"info"}, {"info", "--json"}, {"cache"}}) {
      const ProgramResult result = run_program(words, {.environment = {{"COPPICE_CACHE_MAX_MB", bound}}});
      expect_refused(result, 2,
                     {"COPPICE_CACHE_MAX_MB must be a whole number of MiB from 0 to 1048576, not '" +
                      std::string(bound) + "'"});
    }
  }
  // Kernels are compiled with or without debug code from the program's first moment on.
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"run", scene_, "-o", out_}, {"list"}}) {
    expect_refused(run_program(words, {.environment = {{"COPPICE_DEBUG", "stepp"}}}), 2,
                   {"COPPICE_DEBUG: 'stepp' is not known"});
  }
  EXPECT_FALSE(fs::exists(out_));
}

TEST_F(ProgramEnvironment, DumpsEveryKernelThoughTheCacheHoldsThem) {
  ASSERT_EQ(run_scene({}).exit_code, 0);
  const fs::path dump = folder_ / "dumps/here";
  const ProgramResult result = run_scene({{"COPPICE_DUMP", dump}, {"COPPICE_LOG", "warning"}});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_FALSE(result.err_has("warning"));
  std::map<std::string, std::set<std::string>> suffixes;  // of each kernel's files
  for (const auto& file : fs::directory_iterator(dump)) {
    const std::string name = file.path().filename();
    const size_t end = name.find('.', name.find('-'));
    suffixes[name.substr(0, end)].insert(name.substr(end));
    EXPECT_GT(fs::file_size(file.path()), 0u) << name;
  }
  EXPECT_GE(suffixes.size(), 8u);
  for (const auto& [kernel, found] : suffixes)
    EXPECT_EQ(found, (std::set<std::string>{".in.ll", ".opt.ll", ".s"})) << kernel;
  EXPECT_TRUE(std::any_of(suffixes.begin(), suffixes.end(), [](const auto& kernel) {
    return kernel.first.rfind("mpm.particles_to_grid", 0) == 0;
  }));
}

TEST_F(ProgramEnvironment, RunsThoughItCannotDump) {
  write_text(folder_ / "file", "");
  const ProgramResult result = run_scene({{"COPPICE_DUMP", folder_ / "file"}});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::string warning = "warning: COPPICE_DUMP: cannot write to " + (folder_ / "file") + ": ";
  const auto lines = result.err_lines();
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(), [&](const auto& l) { return l.find(warning) == 0; }), 1)
      << result.err;
}

}  // namespace
}  // namespace coppice
