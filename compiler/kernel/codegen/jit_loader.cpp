// The object loader: ELF relocatable file in, mapped code out.
//
// Lays the allocated sections out in two runs of pages (constants, then code), applies the
// relocations, and only then makes the pages read-only and executable. Every number of the file is
// checked before it is used, although the cache only hands over objects that this user wrote: a
// damaged file must not become a crash.
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>
#include <vector>

#include "compiler/kernel/codegen/jit_loader.h"

namespace fornax::kernel {

namespace {

// Far above any kernel; keeps section sums and 32-bit displacements in range.
constexpr uint64_t kMaxImageBytes = 64u << 20;
constexpr uint64_t kMaxAlignment = 4096;

Error Damaged(const std::string& what) {
    return Error{ErrorCode::kDataLoss, "A kernel's object file is not usable: " + what + "."};
}

// Reads structures out of the file's bytes, within their bounds.
class Reader {
  public:
    explicit Reader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

    bool Contains(uint64_t offset, uint64_t size) const {
        return offset <= bytes_.size() && size <= bytes_.size() - offset;
    }

    template <typename T>
    bool Read(uint64_t offset, T& value) const {
        if (!Contains(offset, sizeof(T))) {
            return false;
        }
        std::memcpy(&value, bytes_.data() + offset, sizeof(T));
        return true;
    }

    // The zero-terminated text at `offset` of the string table `table`.
    bool ReadString(const Elf64_Shdr& table, uint64_t offset, std::string& text) const {
        if (offset >= table.sh_size) {
            return false;
        }
        const char* start = reinterpret_cast<const char*>(bytes_.data()) + table.sh_offset + offset;
        size_t limit = table.sh_size - offset;
        size_t length = strnlen(start, limit);
        text.assign(start, length);
        return length < limit;
    }

    const uint8_t* data() const { return bytes_.data(); }

  private:
    std::span<const uint8_t> bytes_;
};

struct Section {
    Elf64_Shdr header;
    bool allocated = false;
    uint64_t address = 0;  // offset in the image
};

uint64_t AlignUp(uint64_t value, uint64_t alignment) {
    return (value + alignment - 1) & ~(alignment - 1);
}

class Linker {
  public:
    explicit Linker(std::span<const uint8_t> object) : reader_(object) {}

    Status ReadSections();
    Status Layout(uint64_t page_bytes);
    Status CopyAndRelocate(uint8_t* image);
    Result<uint64_t> FindFunction(const std::string& symbol) const;

    uint64_t image_bytes() const { return image_bytes_; }
    uint64_t code_offset() const { return code_offset_; }

  private:
    Status Relocate(uint8_t* image, const Section& relocations);
    // The symbol's offset in the image.
    Result<uint64_t> SymbolAddress(const Elf64_Sym& symbol) const;

    Reader reader_;
    std::vector<Section> sections_;
    const Section* symbols_ = nullptr;
    uint64_t image_bytes_ = 0;
    uint64_t code_offset_ = 0;  // constants lie before it, code from it on
};

Status Linker::ReadSections() {
    Elf64_Ehdr header;
    if (!reader_.Read(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
        header.e_type != ET_REL || header.e_machine != EM_X86_64 ||
        header.e_shentsize != sizeof(Elf64_Shdr)) {
        return Damaged("it is not a relocatable x86-64 ELF file");
    }
    sections_.resize(header.e_shnum);
    for (size_t i = 0; i < sections_.size(); ++i) {
        Elf64_Shdr& section = sections_[i].header;
        if (!reader_.Read(header.e_shoff + i * sizeof(Elf64_Shdr), section) ||
            (section.sh_type != SHT_NOBITS &&
             !reader_.Contains(section.sh_offset, section.sh_size))) {
            return Damaged("section " + std::to_string(i) + " lies outside the file");
        }
        // Unwind tables are left out: nothing unwinds through a kernel.
        sections_[i].allocated = (section.sh_flags & SHF_ALLOC) && section.sh_size != 0 &&
                                 section.sh_type != SHT_X86_64_UNWIND &&
                                 section.sh_type != SHT_NOTE;
        if (!sections_[i].allocated) {
            continue;
        }
        if (section.sh_type != SHT_PROGBITS || (section.sh_flags & (SHF_WRITE | SHF_TLS))) {
            return Damaged("section " + std::to_string(i) + " is neither code nor constants");
        }
        if (section.sh_addralign > kMaxAlignment ||
            (section.sh_addralign > 1 && !std::has_single_bit(section.sh_addralign))) {
            return Damaged("section " + std::to_string(i) + " has an alignment of " +
                           std::to_string(section.sh_addralign));
        }
    }
    for (const Section& section : sections_) {
        if (section.header.sh_type == SHT_SYMTAB) {
            symbols_ = &section;
        }
    }
    if (!symbols_ || symbols_->header.sh_link >= sections_.size() ||
        sections_[symbols_->header.sh_link].header.sh_type != SHT_STRTAB) {
        return Damaged("it has no symbol table");
    }
    return OkStatus();
}

Status Linker::Layout(uint64_t page_bytes) {
    uint64_t end = 0;
    for (bool code : {false, true}) {
        end = AlignUp(end, page_bytes);
        if (code) {
            code_offset_ = end;
        }
        for (Section& section : sections_) {
            if (!section.allocated || ((section.header.sh_flags & SHF_EXECINSTR) != 0) != code) {
                continue;
            }
            section.address = AlignUp(end, std::max<uint64_t>(section.header.sh_addralign, 1));
            end = section.address + section.header.sh_size;
            if (section.header.sh_size > kMaxImageBytes || end > kMaxImageBytes) {
                return Damaged("it needs more than " + std::to_string(kMaxImageBytes) + " bytes");
            }
        }
    }
    if (end == code_offset_) {
        return Damaged("it holds no code");
    }
    image_bytes_ = AlignUp(end, page_bytes);
    return OkStatus();
}

Result<uint64_t> Linker::SymbolAddress(const Elf64_Sym& symbol) const {
    if (symbol.st_shndx == SHN_UNDEF) {
        std::string name;
        if (!reader_.ReadString(sections_[symbols_->header.sh_link].header, symbol.st_name, name)) {
            name = "?";
        }
        return Damaged("it needs the function or variable " + name + " from outside");
    }
    if (symbol.st_shndx >= sections_.size() || !sections_[symbol.st_shndx].allocated ||
        symbol.st_value > sections_[symbol.st_shndx].header.sh_size) {
        return Damaged("a symbol lies outside the sections");
    }
    return sections_[symbol.st_shndx].address + symbol.st_value;
}

Status Linker::Relocate(uint8_t* image, const Section& relocations) {
    const Section& target = sections_[relocations.header.sh_info];
    uint64_t count = relocations.header.sh_size / sizeof(Elf64_Rela);
    for (uint64_t i = 0; i < count; ++i) {
        Elf64_Rela entry;
        Elf64_Sym symbol;
        uint64_t symbol_index;
        if (!reader_.Read(relocations.header.sh_offset + i * sizeof(entry), entry)) {
            return Damaged("a relocation lies outside the file");
        }
        symbol_index = ELF64_R_SYM(entry.r_info);
        if (symbol_index >= symbols_->header.sh_size / sizeof(symbol) ||
            !reader_.Read(symbols_->header.sh_offset + symbol_index * sizeof(symbol), symbol)) {
            return Damaged("a relocation names no symbol");
        }
        FORNAX_ASSIGN_OR_RETURN(uint64_t address, SymbolAddress(symbol));
        uint32_t type = ELF64_R_TYPE(entry.r_info);
        uint32_t width = type == R_X86_64_64 || type == R_X86_64_PC64 ? 8 : 4;
        if (entry.r_offset > target.header.sh_size ||
            width > target.header.sh_size - entry.r_offset) {
            return Damaged("a relocation lies outside its section");
        }
        uint8_t* place = image + target.address + entry.r_offset;
        // Unsigned arithmetic wraps, so that a wild addend is only a wrong number.
        uint64_t value = address + static_cast<uint64_t>(entry.r_addend);
        uint64_t relative = value - (target.address + entry.r_offset);
        switch (type) {
            case R_X86_64_64:
                value += reinterpret_cast<uint64_t>(image);
                std::memcpy(place, &value, 8);
                break;
            case R_X86_64_PC64:
                std::memcpy(place, &relative, 8);
                break;
            case R_X86_64_PC32:
            case R_X86_64_PLT32: {
                int64_t distance = static_cast<int64_t>(relative);
                if (distance < std::numeric_limits<int32_t>::min() ||
                    distance > std::numeric_limits<int32_t>::max()) {
                    return Damaged("a relocation does not fit 32 bits");
                }
                int32_t narrow = static_cast<int32_t>(distance);
                std::memcpy(place, &narrow, 4);
                break;
            }
            default:
                return Damaged("it has a relocation of type " + std::to_string(type) +
                               ", which kernels do not need");
        }
    }
    return OkStatus();
}

Status Linker::CopyAndRelocate(uint8_t* image) {
    for (const Section& section : sections_) {
        if (section.allocated) {
            std::memcpy(image + section.address, reader_.data() + section.header.sh_offset,
                        section.header.sh_size);
        }
    }
    for (const Section& section : sections_) {
        uint32_t type = section.header.sh_type;
        if (type != SHT_RELA && type != SHT_REL) {
            continue;
        }
        if (section.header.sh_info >= sections_.size()) {
            return Damaged("relocations name no section");
        }
        if (!sections_[section.header.sh_info].allocated) {
            continue;
        }
        if (type == SHT_REL) {
            return Damaged("its relocations have no addends");
        }
        FORNAX_RETURN_IF_ERROR(Relocate(image, section));
    }
    return OkStatus();
}

Result<uint64_t> Linker::FindFunction(const std::string& wanted) const {
    uint64_t count = symbols_->header.sh_size / sizeof(Elf64_Sym);
    for (uint64_t i = 0; i < count; ++i) {
        Elf64_Sym symbol;
        std::string name;
        if (!reader_.Read(symbols_->header.sh_offset + i * sizeof(symbol), symbol) ||
            !reader_.ReadString(sections_[symbols_->header.sh_link].header, symbol.st_name, name)) {
            return Damaged("its symbol table is cut off");
        }
        if (name != wanted || symbol.st_shndx == SHN_UNDEF) {
            continue;
        }
        FORNAX_ASSIGN_OR_RETURN(uint64_t address, SymbolAddress(symbol));
        if (address < code_offset_ || address >= image_bytes_) {
            return Damaged("the symbol " + wanted + " is not code");
        }
        return address;
    }
    return Damaged("it has no function " + wanted);
}

}  // namespace

Result<std::unique_ptr<LoadedObject>> LoadedObject::Load(std::span<const uint8_t> object,
                                                         const std::string& symbol) {
    Linker linker(object);
    FORNAX_RETURN_IF_ERROR(linker.ReadSections());
    FORNAX_RETURN_IF_ERROR(linker.Layout(static_cast<uint64_t>(sysconf(_SC_PAGESIZE))));
    FORNAX_ASSIGN_OR_RETURN(uint64_t entry, linker.FindFunction(symbol));

    void* base = mmap(nullptr, linker.image_bytes(), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) {
        return Error{ErrorCode::kOutOfHostMemory, "There is no memory for " +
                                                      std::to_string(linker.image_bytes()) +
                                                      " bytes of a kernel's code."};
    }
    std::unique_ptr<LoadedObject> loaded(new LoadedObject);
    loaded->base_ = base;
    loaded->mapped_bytes_ = linker.image_bytes();
    uint8_t* image = static_cast<uint8_t*>(base);
    FORNAX_RETURN_IF_ERROR(linker.CopyAndRelocate(image));
    // x86 keeps instruction fetch coherent with earlier stores of the same address space.
    uint64_t code = linker.code_offset();
    if ((code != 0 && mprotect(image, code, PROT_READ) != 0) ||
        mprotect(image + code, loaded->mapped_bytes_ - code, PROT_READ | PROT_EXEC) != 0) {
        return Error{ErrorCode::kOutOfHostMemory,
                     std::string("The operating system does not let a kernel's code be run: ") +
                         std::strerror(errno) + "."};
    }
    loaded->entry_ = image + entry;
    return loaded;
}

LoadedObject::~LoadedObject() {
    if (base_) {
        munmap(base_, mapped_bytes_);
    }
}

}  // namespace fornax::kernel
