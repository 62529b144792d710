// Assigns files to inputs, finds the sizes, and makes up the rest.
#include "tools/fornax/network_inputs.h"

#include <algorithm>
#include <optional>
#include <random>
#include <set>

#include <fmt/format.h>

#include "tools/tensors/tensor_file.h"

namespace fornax::tool {
namespace {

using graph::ElementType;
using graph::Tensor;

// Random inputs larger than this are taken for a mistake.
constexpr int64_t kMaxRandomElements = int64_t{1} << 32;

Error Invalid(std::string message) {
    return {ErrorCode::kInvalidArgument, std::move(message)};
}

std::string NamesOf(const Network& network) {
    std::string names;
    for (const NetworkInput& input : network.inputs) {
        names += fmt::format("{}{}", names.empty() ? "" : ", ", input.name);
    }
    return names.empty() ? "none" : names;
}

class InputReader {
  public:
    InputReader(const Network& network, const std::map<std::string, int64_t>& dims)
        : network_(network), dims_(dims), given_(network.inputs.size()) {
        sources_.resize(network.inputs.size());
    }

    Status ReadFile(const std::string& argument) {
        std::optional<size_t> named;
        std::string path = argument;
        for (size_t at = argument.find('='); at != std::string::npos && !named;
             at = argument.find('=', at + 1)) {
            named = Find(argument.substr(0, at));
            path = named ? argument.substr(at + 1) : path;
        }
        FORNAX_ASSIGN_OR_RETURN(std::vector<tensors::NamedTensor> read,
                                tensors::ReadTensorFile(path));
        if (path.ends_with(".npz") && !named) {
            return AssignAll(path, std::move(read));
        }
        if (read.size() != 1) {
            return Invalid(fmt::format("The file {} holds {} arrays, which are not one input.",
                                       path, read.size()));
        }
        if (!named && !read[0].name.empty()) {
            named = Find(read[0].name);
            named = named && !given_[*named] ? named : std::nullopt;
        }
        if (!named) {
            const auto next = std::ranges::find_if(
                given_, [](const std::optional<Tensor>& tensor) { return !tensor.has_value(); });
            if (next == given_.end()) {
                return Invalid(
                    fmt::format("The file {} is one more than the inputs of {}, which "
                                "are: {}.",
                                path, network_.path, NamesOf(network_)));
            }
            named = static_cast<size_t>(next - given_.begin());
        }
        return Assign(*named, path, std::move(read[0].tensor));
    }

    Result<NetworkData> Finish(uint64_t seed) {
        FORNAX_RETURN_IF_ERROR(CheckDims());
        NetworkData data;
        for (size_t i = 0; i < given_.size(); ++i) {
            if (!given_[i]) {
                FORNAX_ASSIGN_OR_RETURN(given_[i], RandomTensor(network_.inputs[i], seed + i));
                sources_[i] = fmt::format("random, seed {}", seed + i);
            }
            data.tensors.push_back(std::move(*given_[i]));
        }
        data.sources = std::move(sources_);
        return data;
    }

  private:
    std::optional<size_t> Find(const std::string& name) const {
        const auto found = std::ranges::find(network_.inputs, name, &NetworkInput::name);
        if (found == network_.inputs.end()) {
            return std::nullopt;
        }
        return static_cast<size_t>(found - network_.inputs.begin());
    }

    Status AssignAll(const std::string& path, std::vector<tensors::NamedTensor> read) {
        for (tensors::NamedTensor& entry : read) {
            const std::optional<size_t> input = Find(entry.name);
            if (!input) {
                return Invalid(
                    fmt::format("The file {} holds an array {}, and the inputs of {} "
                                "are: {}.",
                                path, entry.name, network_.path, NamesOf(network_)));
            }
            FORNAX_RETURN_IF_ERROR(Assign(*input, path, std::move(entry.tensor)));
        }
        return OkStatus();
    }

    Status Assign(size_t index, const std::string& path, Tensor tensor) {
        const NetworkInput& input = network_.inputs[index];
        if (given_[index]) {
            return Invalid(fmt::format("The input {} is given by two files, {} is the second.",
                                       input.name, path));
        }
        FORNAX_RETURN_IF_ERROR(Convert(input, path, tensor));
        FORNAX_RETURN_IF_ERROR(BindSizes(input, path, tensor));
        sources_[index] = fmt::format("from {}", path);
        given_[index] = std::move(tensor);
        return OkStatus();
    }

    // Integers of 2 and 4 bits are stored as bytes, and floats of 8 bits as what has no type.
    static Status Convert(const NetworkInput& input, const std::string& path, Tensor& tensor) {
        const ElementType to = input.type.element;
        if (tensor.element == to) {
            return OkStatus();
        }
        const bool is_narrow = (tensor.element == ElementType::kI8 && graph::IsInteger(to) &&
                                graph::IsSigned(to) && graph::BitsOf(to) < 8) ||
                               (tensor.element == ElementType::kU8 && graph::IsInteger(to) &&
                                !graph::IsSigned(to) && graph::BitsOf(to) < 8);
        if (!is_narrow) {
            return Invalid(
                fmt::format("The file {} holds elements of type {}, and the input {} "
                            "takes {}.",
                            path, graph::Name(tensor.element), input.name, graph::Name(to)));
        }
        for (int64_t i = 0; i < tensor.count(); ++i) {
            const graph::Scalar value = tensor.At(i);
            const graph::Scalar kept = graph::ConvertScalar(value, tensor.element, to);
            uint8_t byte = 0;
            graph::WriteElement(to, kept, &byte);
            if (graph::ReadElement(to, &byte) != value) {
                return Invalid(fmt::format("The file {} holds {}, and the input {} takes {}.", path,
                                           value.integer, input.name, graph::Name(to)));
            }
        }
        tensor.element = to;
        return OkStatus();
    }

    Status BindSizes(const NetworkInput& input, const std::string& path, const Tensor& tensor) {
        if (!input.has_shape) {
            return OkStatus();
        }
        const graph::Shape& shape = input.type.shape;
        const auto wrong = [&](const std::string& reason) {
            return Invalid(fmt::format("The file {} holds {}, and the input {} takes {}{}.", path,
                                       tensor.type().ToString(), input.name, input.type.ToString(),
                                       reason));
        };
        if (shape.rank() != tensor.dims.size()) {
            return wrong("");
        }
        for (size_t axis = 0; axis < shape.rank(); ++axis) {
            const int64_t size = tensor.dims[axis];
            if (shape[axis].is_constant()) {
                if (shape[axis].constant() != size) {
                    return wrong("");
                }
            } else if (shape[axis].Symbols().size() == 1 &&
                       shape[axis] == graph::Expr(shape[axis].Symbols()[0])) {
                const graph::Symbol symbol = shape[axis].Symbols()[0];
                const auto [bound, is_new] = bindings_.emplace(symbol, size);
                if (!is_new && bound->second != size) {
                    return wrong(fmt::format(", where {} is {} by another input", symbol.name(),
                                             bound->second));
                }
            }
        }
        return OkStatus();
    }

    // Every --dim has to be a name of the model, and not against a file.
    Status CheckDims() {
        std::set<std::string> names;
        for (const NetworkInput& input : network_.inputs) {
            for (const graph::Expr& dim : input.type.shape.dims()) {
                for (const graph::Symbol& symbol : dim.Symbols()) {
                    names.insert(symbol.name());
                    if (!dims_.contains(symbol.name())) {
                        bindings_.emplace(symbol, 1);
                    }
                }
            }
        }
        for (const auto& [name, size] : dims_) {
            if (!names.contains(name)) {
                return Invalid(fmt::format(
                    "{} leaves no size {} open; those that it does are: {}.", network_.path, name,
                    names.empty() ? "none" : fmt::to_string(fmt::join(names, ", "))));
            }
            const auto [bound, is_new] = bindings_.emplace(graph::Symbol(name), size);
            if (bound->second != size) {
                return Invalid(
                    fmt::format("--dim {}={} is against the inputs' files, by which it "
                                "is {}.",
                                name, size, bound->second));
            }
        }
        return OkStatus();
    }

    // Floats are in [-1, 1), integers 0 or 1: positions and masks that every network takes.
    Result<Tensor> RandomTensor(const NetworkInput& input, uint64_t seed) const {
        const ElementType element = input.type.element;
        if (!input.has_shape || element == ElementType::kString) {
            return Invalid(fmt::format("The input {} of {} has {}; give it a file.", input.name,
                                       network_.path,
                                       input.has_shape ? "strings" : "a shape that is open"));
        }
        std::vector<int64_t> dims;
        int64_t count = 1;
        for (const graph::Expr& dim : input.type.shape.dims()) {
            const std::optional<int64_t> size = dim.Evaluate(bindings_);
            if (!size || *size < 0 || (*size != 0 && count > kMaxRandomElements / *size)) {
                return Invalid(
                    fmt::format("The input {} of {} has the shape {}, of which no "
                                "random tensor is made; give it a file.",
                                input.name, network_.path, input.type.shape.ToString()));
            }
            count *= std::max<int64_t>(*size, 1);
            dims.push_back(*size);
        }
        std::mt19937_64 generator(seed);
        std::uniform_real_distribution<float> uniform(-1, 1);
        uint8_t* data = nullptr;
        Tensor tensor = Tensor::Zeros(element, dims, &data);
        const size_t size_bytes = graph::BytesOf(element);
        for (int64_t i = 0; i < tensor.count(); ++i, data += size_bytes) {
            const graph::Scalar value =
                graph::IsFloat(element)
                    ? graph::Scalar::Float(static_cast<double>(uniform(generator)))
                    : graph::Scalar::Integer(static_cast<int64_t>(generator() >> 63));
            graph::WriteElement(element, value, data);
        }
        return tensor;
    }

    const Network& network_;
    const std::map<std::string, int64_t>& dims_;
    std::vector<std::optional<Tensor>> given_;  // by input
    std::vector<std::string> sources_;          // by input
    graph::Bindings bindings_;
};

}  // namespace

void InputOptions::AddTo(CLI::App& command) {
    command
        .add_option("-i,--input", files,
                    "[NAME=]FILE: an input as .npy, .npz or .pb (by name, or in their order)")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    command.add_option("--seed", seed, "Of the random numbers that inputs without a file get")
        ->capture_default_str();
}

Result<NetworkData> PrepareInputs(const Network& network,
                                  const InputOptions& options,
                                  const std::map<std::string, int64_t>& dims) {
    InputReader reader(network, dims);
    for (const std::string& file : options.files) {
        FORNAX_RETURN_IF_ERROR(reader.ReadFile(file));
    }
    return reader.Finish(options.seed);
}

}  // namespace fornax::tool
