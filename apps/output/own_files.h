// Keeps what an option writes (--dot, --trace, --journal) out of the files of the run itself.
//
// Files are told apart by device and inode, so that links and other spellings are seen. Standard output
// ("-"), pipes and devices are no files that could be lost. Without a file name nothing is refused.
#pragma once

#include <string>

namespace coppice {

// Errors: kUsage, naming both, where the file that `option` names is `input`, from which the run reads
// `what`.
void refuse_input(const std::string& option, const std::string& file, const std::string& what,
                  const std::string& input);

// Errors: kUsage, naming both, where the file that `option` names is one that a run writes into `folder`
// (empty: the working folder). The file needs not be there.
void refuse_output(const std::string& option, const std::string& file, const std::string& folder);

// Errors: kUsage, naming both, where two options name one file: one of the texts would be lost.
void refuse_same_file(const std::string& option, const std::string& file, const std::string& other_option,
                      const std::string& other);

}  // namespace coppice
