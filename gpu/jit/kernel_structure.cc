// Hashes of kernels by what they do (see kernel_structure.h).
#include "gpu/jit/kernel_structure.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/MD5.h>

#include <vector>

namespace coppice::kernelgen {
namespace {

// Values are numbered in the order in which the entry leads to them.
class Structure {
 public:
  explicit Structure(const llvm::Function& entry) { use(entry); }

  uint64_t finish() {
    for (size_t i = 0; i < open_.size(); ++i) add(*open_[i]);
    llvm::MD5::MD5Result result;
    hash_.final(result);
    return result.low();
  }

 private:
  void add(uint64_t number) {
    hash_.update(llvm::ArrayRef(reinterpret_cast<const uint8_t*>(&number), sizeof number));
  }
  void add(llvm::StringRef text) { add(text.size()), hash_.update(text); }
  void add(const llvm::APInt& bits) {
    for (unsigned i = 0; i < bits.getNumWords(); ++i) add(bits.getRawData()[i]);
  }
  // Pointers are opaque, so that no type holds itself.
  void add(const llvm::Type& type) {
    add(type.getTypeID());
    if (const auto* integer = llvm::dyn_cast<llvm::IntegerType>(&type)) add(integer->getBitWidth());
    if (const auto* array = llvm::dyn_cast<llvm::ArrayType>(&type)) add(array->getNumElements());
    for (const llvm::Type* part : type.subtypes()) add(*part);
  }

  // Says which value it is: a number where it was seen before.
  void use(const llvm::Value& value) {
    const auto [at, is_new] = numbers_.try_emplace(&value, numbers_.size());
    add(at->second);
    const auto* constant = llvm::dyn_cast<llvm::Constant>(&value);
    if (!is_new || constant == nullptr) return;
    add(constant->getValueID()), add(*constant->getType());
    if (const auto* global = llvm::dyn_cast<llvm::GlobalValue>(constant)) {
      if (global->isDeclaration()) add(global->getName());
      if (const auto* f = llvm::dyn_cast<llvm::Function>(global)) return open_.push_back(f);
    } else if (const auto* integer = llvm::dyn_cast<llvm::ConstantInt>(constant)) {
      add(integer->getValue());
    } else if (const auto* real = llvm::dyn_cast<llvm::ConstantFP>(constant)) {
      add(real->getValueAPF().bitcastToAPInt());
    } else if (const auto* data = llvm::dyn_cast<llvm::ConstantDataSequential>(constant)) {
      add(data->getRawDataValues());
    } else if (const auto* expression = llvm::dyn_cast<llvm::ConstantExpr>(constant)) {
      add(expression->getOpcode());
    }
    for (const llvm::Use& operand : constant->operands()) use(*operand.get());
  }

  void add(const llvm::Instruction& i) {
    add(i.getOpcode()), add(*i.getType()), add(i.getRawSubclassOptionalData());
    if (const auto* compare = llvm::dyn_cast<llvm::CmpInst>(&i)) add(compare->getPredicate());
    if (const auto* room = llvm::dyn_cast<llvm::AllocaInst>(&i)) add(*room->getAllocatedType());
    if (const auto* step = llvm::dyn_cast<llvm::GetElementPtrInst>(&i)) add(*step->getSourceElementType());
    if (const auto* atomic = llvm::dyn_cast<llvm::AtomicRMWInst>(&i)) add(atomic->getOperation());
    const auto add_each = [this](llvm::ArrayRef<unsigned> indices) {
      for (const unsigned index : indices) add(index);
    };
    if (const auto* part = llvm::dyn_cast<llvm::ExtractValueInst>(&i)) add_each(part->getIndices());
    if (const auto* part = llvm::dyn_cast<llvm::InsertValueInst>(&i)) add_each(part->getIndices());
    for (const llvm::Use& operand : i.operands()) {
      if (!llvm::isa<llvm::MetadataAsValue>(operand.get())) use(*operand.get());  // of debug information
    }
  }
  void add(const llvm::Function& f) {
    add(*f.getFunctionType());
    for (const llvm::BasicBlock& block : f) {
      use(block);
      for (const llvm::Instruction& i : block) use(i), add(i);
    }
  }

  llvm::MD5 hash_;
  llvm::DenseMap<const llvm::Value*, uint64_t> numbers_;
  std::vector<const llvm::Function*> open_;
};

}  // namespace

uint64_t kernel_structure(const llvm::Function& entry) { return Structure(entry).finish(); }

}  // namespace coppice::kernelgen
