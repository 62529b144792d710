// The translator: one entry point's instructions to kernel IR. Shared by
//
//   translator.cpp    entry point, functions, values and their scopes, the table of opcodes
//   homes.cpp         values that are used outside of the block that makes them
//   control_flow.cpp  blocks, structured constructs, phis, calls
//   variables.cpp, pointers.cpp  variables; access chains, pointers as values
//   memory.cpp        loads, stores, copies
//   atomics.cpp       atomics
//   large_values.cpp  values that are kept in memory
//   composites.cpp    vectors, matrices, structures as tuples of scalars
//   cooperative_matrix.cpp  matrices that a subgroup holds together
//   subgroups.cpp     operations between the invocations of a subgroup
//   derivatives.cpp   differences between the invocations of a quad
//   arithmetic.cpp    everything that works component by component; conversions
//   dot_product.cpp   dot products of integers, and of bfloat16 added to floats
//   execution_modes.cpp  the workgroup's size, what float arithmetic may do
//   float_modes.cpp   flushing of denormals, rounding towards zero
//   glsl_std_450.cpp  the GLSL.std.450 instructions
//   images.cpp, sampled_images.cpp  images, samplers, texel buffers; instructions that sample
//   image_code.cpp    texels to components and back
//   image_sampling.cpp filters, levels, comparisons
//   extensions.cpp    small extensions of SPIR-V
//
// A SPIR-V value is a tuple of IR scalars, in declaration order. A pointer is resolved to a place
// when it is made; it becomes a tuple (Type::pointer_scalars) only where it is chosen at run time
// or stored.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <unordered_set>
#include <utility>

#include "compiler/kernel/ir/builder.h"
#include "compiler/kernel/spirv/constants.h"
#include "compiler/kernel/spirv/float_modes.h"
#include "compiler/kernel/spirv/image_code.h"
#include "compiler/kernel/spirv/image_sampling.h"

namespace fornax::kernel::spirv {

using Tuple = std::vector<ir::ValueId>;

struct Pointer {
    // kImage: an image, a sampler or a texel buffer, which a load of it is, too.
    // kHeap: descriptors in a heap, whose bytes only say where they are.
    enum class Space : uint8_t {
        kBuffer,
        kPush,
        kShared,
        kAddress,
        kLocal,
        kBuiltin,
        kImage,
        kHeap
    };
    // A step into an array of a private variable.
    struct Term {
        ir::ValueId index;
        uint32_t element = 0;  // type id of the array's element
        uint32_t leaf = 0;     // first leaf of that element in the variable
    };

    Space space = Space::kLocal;
    uint32_t type = 0;  // pointee's type id; what uses an untyped pointer says its own
    bool untyped = false;
    bool is_volatile = false;

    // Memory with bytes: kBuffer, kPush, kShared, kAddress.
    uint32_t binding = 0;        // kBuffer: index into Kernel::bindings; kHeap: the heap's set
    ir::ValueId element;         // kBuffer: descriptor array element, or invalid for 0
    bool needs_element = false;  // kBuffer: an array of blocks, not indexed yet
    bool nonuniform = false;
    ir::ValueId view_address;  // kBuffer, in place of a binding: address and size, i64
    ir::ValueId view_size;
    // kBuffer, kImage with descriptor heaps, until ResolveHeap: `element` indexes what is mapped,
    // from the binding `mapped_binding` of the mapping on.
    const HeapMapping* mapping = nullptr;
    uint32_t mapped_binding = 0;
    // The dynamic part in bytes, of OffsetType, or invalid for 0; kAddress: always there.
    ir::ValueId offset;
    uint64_t const_offset = 0;
    uint32_t align = 16;     // of the dynamic part
    bool row_major = false;  // of the matrix pointed to, or held by the arrays pointed to
    uint32_t matrix_stride = 0;
    uint32_t component_stride = 0;  // a column of a row-major matrix; 0: components are adjacent

    // kImage that was made of an image and a sampler.
    bool has_sampler = false;
    bool sampler_nonuniform = false;
    uint32_t sampler_binding = 0;
    ir::ValueId sampler_element;

    // A texel: what is outside of its image is not there. Invalid for all other memory.
    ir::ValueId guard;

    // kLocal.
    uint32_t variable = 0;  // index into Translator's variables
    uint32_t leaf = 0;      // first leaf of the pointee
    std::vector<Term> terms;

    // kBuiltin.
    spv::BuiltIn builtin = spv::BuiltIn::Max;
    ir::ValueId component;  // of the vector, or invalid for all
};

// An image as an instruction uses it: its type, and where its descriptor is.
struct Image {
    Pointer pointer;
    uint32_t type = 0;  // id of the OpTypeImage
    ir::Type component = ir::Type::kF32;
    spv::Dim dim = spv::Dim::Dim2D;
    bool arrayed = false;
    bool storage = false;  // used without a sampler
    bool multisampled = false;
    ir::ValueId format;  // of texels, an i32: constant if the type says it
    bool known_format = false;
    ImageCode::Descriptor descriptor;

    // Compressed formats are those of two-dimensional sampled images.
    bool MayBeCompressed() const {
        return !storage && !multisampled && dim != spv::Dim::Dim1D && dim != spv::Dim::Buffer;
    }
    // Coordinates without the array's layer.
    uint32_t Dimensions() const {
        switch (dim) {
            case spv::Dim::Dim1D:
            case spv::Dim::Buffer:
                return 1;
            case spv::Dim::Dim3D:
            case spv::Dim::Cube:
                return 3;
            default:
                return 2;
        }
    }
};

// What the descriptor of an OpTypeImage is by itself, without a sampler.
BindingLayout::Kind DescriptorKindOf(const Inst& image);

// The optional operands of image instructions; invalid where not given.
struct ImageOperands {
    ir::ValueId bias;
    ir::ValueId lod;
    Tuple grad_x;
    Tuple grad_y;
    Tuple offset;
    Tuple offsets;  // ConstOffsets: four pairs
    ir::ValueId sample;
    ir::ValueId min_lod;
};

struct Value {
    uint32_t type = 0;
    Tuple scalars;
    std::optional<Pointer> pointer;
    ir::BlockId block;  // where it was made
    // The value itself is in private memory, where `pointer` says, and is not written again.
    bool is_large = false;
};

// A private variable: one IR local a leaf.
struct LocalVariable {
    std::vector<uint32_t> locals;
};

class Translator {
  public:
    Translator(const Module& module,
               const TypeTable& types,
               const ConstantTable& constants,
               const CompileRequest& request)
        : module_(module),
          types_(types),
          constants_(constants),
          request_(request),
          builder_(kernel_, {}),
          modes_(builder_) {}

    Result<ir::Kernel> TranslateEntryPoint(const Inst& entry_point);
    // For OpSpecConstantOp: the instruction alone, its operands constants.
    Result<Tuple> TranslateAlone(const Inst& inst);
    ir::Kernel TakeKernel() { return std::move(kernel_); }

  private:
    // --- translator.cpp ---
    struct Frame {
        const Function* function = nullptr;
        std::unordered_map<uint32_t, Value> values;
        // Earlier translations of values whose block was translated more than once.
        std::unordered_map<uint32_t, std::vector<Value>> older;
        // Values that were given a spill slot to be used outside their scope: locals by id, in the
        // order of VisitIds.
        std::unordered_map<uint32_t, std::vector<uint32_t>> homes;
        std::unordered_map<uint32_t, std::vector<uint32_t>> phi_locals;
        std::unordered_set<uint32_t> translated;  // labels of blocks
        std::vector<uint32_t> path;               // labels that lead to the block being translated
        std::unordered_set<uint32_t> on_path;
        ir::InstId return_scope;  // invalid in the entry point
        std::vector<uint32_t> return_locals;
        std::optional<Pointer> return_place;       // of a large value
        std::map<uint32_t, Pointer> large_places;  // by the result's id
    };
    Status CheckCapabilities();
    Status Instruction(const Inst& inst);
    using Handler = Status (Translator::*)(const Inst&);
    static Handler FindHandler(spv::Op op);
    Status Ignore(const Inst&) { return OkStatus(); }
    Status Undefined(const Inst& inst);

    Result<Value> Use(const Inst& user, uint32_t id);
    Result<Tuple> UseTuple(const Inst& user, uint32_t id);  // of one scalar at least
    Result<Tuple> UseParts(const Inst& user, uint32_t id);  // may be of an empty type
    Result<Pointer> UsePointer(const Inst& user, uint32_t id);
    Result<ir::ValueId> UseScalar(const Inst& user, uint32_t id);
    Result<const Type*> TypeOf(const Inst& user, uint32_t type_id);
    Result<const Type*> ValueType(const Inst& user, uint32_t id);
    Status Define(const Inst& inst, Tuple scalars);
    Status DefinePointer(const Inst& inst, Pointer pointer);
    bool InScope(ir::BlockId block) const;
    Value Rescue(uint32_t id, const Value& value);
    void StoreHome(const Value& definition, const std::vector<uint32_t>& homes);
    void InsertHomeStores();
    Status SetValue(const Inst& inst, Value value);
    Status Spend(const Inst& inst, uint64_t scalars);
    Tuple Materialize(const Constant& constant);
    ir::BlockId NewChild(ir::InstId parent);
    uint32_t NewLocal(ir::Type type, uint32_t count = 1);
    void StoreLocal(uint32_t local, ir::ValueId value);
    ir::ValueId LoadLocal(uint32_t local);

    // --- control_flow.cpp ---
    struct Jump {
        enum class Kind : uint8_t { kMerge, kContinue, kNext };
        uint32_t label = 0;
        Kind kind = Kind::kMerge;
        ir::InstId construct;
    };
    Status From(uint32_t from, uint32_t label);
    Status CountRepeat(uint32_t label, const Block& block);
    Status LoadPhis(const Block& block);
    Status StorePhis(uint32_t from, uint32_t label);
    const Jump* FindJump(uint32_t label) const;
    Status EmitJump(const Inst& inst, const Jump& jump);
    Status Loop(uint32_t header, const Block& block, const Inst& merge, uint32_t& next);
    // Translates a block's instructions and its terminator. `next` is where control goes on in the
    // same IR block, 0 if nowhere; `from` is set to the label that control comes from then (0:
    // after a merge).
    Status Contents(uint32_t label, const Block& block, uint32_t& next, uint32_t& from);
    Status Branch(const Inst& inst, uint32_t label, uint32_t merge, uint32_t& next, uint32_t& from);
    Status Conditional(const Inst& inst,
                       uint32_t label,
                       uint32_t merge,
                       uint32_t& next,
                       uint32_t& from);
    Status Switch(const Inst& inst, uint32_t label, uint32_t merge, uint32_t& next, uint32_t& from);
    Status Return(const Inst& inst);
    Status Side(ir::BlockId block, uint32_t from, uint32_t label);
    Status Call(const Inst& inst);
    Status ControlBarrier(const Inst& inst);
    Status MemoryBarrier(const Inst& inst);

    // --- variables.cpp ---
    Status GlobalVariables();
    Status Variable(const Inst& inst);
    Status FunctionVariable(const Inst& inst);
    Status BufferVariable(const Inst& inst, const Type& type);
    Status ImageVariable(const Inst& inst, const Type& type);
    Result<ir::Binding> FindBinding(const Inst& inst);

    // --- heaps.cpp ---
    Result<const HeapMapping*> FindMapping(const Inst& inst, uint32_t resource, uint32_t* binding);
    uint32_t AddHeapBinding(BindingLayout::Kind kind, bool writable);
    Status MapBuffer(const Inst& inst, Pointer& pointer, BindingLayout::Kind kind, bool writable);
    Status MapImage(const Inst& inst, Pointer& pointer, BindingLayout::Kind kind, bool combined);
    Status HeapVariable(const Inst& inst, spv::BuiltIn builtin);
    void ResolveHeap(Pointer& pointer);
    ir::ValueId MappedElement(const Pointer& pointer, bool sampler);
    ir::ValueId HeapElement(ir::ValueId offset, BindingLayout::Kind kind);
    ir::ValueId HeapBound(size_t at);
    ir::ValueId MappedBuffer(const Pointer& pointer);
    ir::ValueId PushWord(uint32_t offset, ir::Type type);
    ir::ValueId WordBehind(ir::ValueId address, ir::ValueId offset, ir::Type type);
    Status LoadHeapDescriptor(const Inst& inst, Pointer& pointer, uint32_t type);
    Status BufferPointer(const Inst& inst);
    Status WorkgroupVariable(const Inst& inst, const Type& type);
    const Type* WorkgroupType(const Inst& inst) const;
    uint64_t AliasedWorkgroupBytes();
    std::optional<uint64_t> WorkgroupStride(uint32_t element);
    Result<Pointer> PrivateVariable(const Inst& inst, const Type& type);
    Result<Pointer> PrivatePlace(const Inst& inst, const Type& type);
    uint64_t SlotsOfLeaf(const Type& type, uint32_t leaf) const;

    // --- pointers.cpp ---
    Status AccessChain(const Inst& inst);
    Status PtrAccessChain(const Inst& inst);
    Status Retype(const Inst& inst, Pointer& pointer, uint32_t type);
    Status DefineStepped(const Inst& inst, Pointer pointer);
    Result<uint64_t> StrideOf(const Inst& inst, const Type& pointer, uint32_t pointee);
    Result<Pointer> PointerFromScalars(const Inst& inst, const Value& value);
    Result<Tuple> PointerScalars(const Inst& inst, const Pointer& pointer);
    Result<Tuple> PlaceScalars(const Inst& inst, const Pointer& pointer);
    Result<Tuple> UsePlace(const Inst& inst, uint32_t id);
    Status PointerToInteger(const Inst& inst);
    Status IntegerToPointer(const Inst& inst);
    Status ComparePointers(const Inst& inst);
    Result<ir::ValueId> PointerNumber(const Inst& inst, uint32_t id);
    Status Step(const Inst& inst, Pointer& pointer, uint32_t index_id);
    Status StepBytes(const Inst& inst, Pointer& pointer, const Type& type, uint32_t index_id);
    Status AddIndex(const Inst& inst, Pointer& pointer, uint32_t index_id, uint64_t stride);
    void AddRuntimeIndex(Pointer& pointer, ir::ValueId index, uint64_t stride);
    Status ArrayLength(const Inst& inst);
    Status CopyObject(const Inst& inst);

    // --- memory.cpp ---
    Status Load(const Inst& inst);
    Status Store(const Inst& inst);
    Status CopyMemory(const Inst& inst);
    Status CopyMemorySized(const Inst& inst);
    size_t SecondMemoryOperands(const Inst& inst, size_t index) const;
    Status LoadRun(const Inst& inst,
                   const Pointer& pointer,
                   ir::Type scalar,
                   uint32_t count,
                   uint64_t at,
                   Tuple& out);
    Status StoreRun(const Inst& inst,
                    const Pointer& pointer,
                    std::span<const ir::ValueId> values,
                    uint64_t at);
    Status CheckWritable(const Inst& inst, const Pointer& pointer);
    Status MemoryOperands(const Inst& inst, size_t index, Pointer& pointer);
    uint64_t AlignAt(const Pointer& pointer, uint64_t at) const;
    Result<Tuple> LoadFrom(const Inst& inst, const Pointer& pointer);
    Status StoreTo(const Inst& inst, const Pointer& pointer, const Tuple& value);
    // Visits the runs of adjacent elements of a value in byte-addressed memory, in order.
    template <typename Visit>
    Status VisitRuns(const Inst& inst,
                     const Pointer& pointer,
                     const Type& type,
                     uint64_t at,
                     bool row_major,
                     uint32_t matrix_stride,
                     Visit&& visit);
    // Visits the scalars of a private variable's part: leaf and constant slot.
    template <typename Visit>
    void VisitSlots(const Type& type,
                    uint32_t leaf,
                    const std::vector<uint64_t>& slots,
                    Visit&& visit);
    ir::ValueId SlotIndex(const Pointer& pointer, uint32_t leaf, uint64_t constant);
    ir::Type OffsetType(const Pointer& pointer) const;
    ir::ValueId ByteOffset(const Pointer& pointer, uint64_t constant);
    ir::ValueId BufferOf(const Pointer& pointer);
    Result<Tuple> LoadBuiltin(const Inst& inst, const Pointer& pointer);
    Status CheckComposite(const Inst& inst, const Type& type);

    // --- large_values.cpp ---
    bool IsLarge(const Type& type) const;
    bool HasLargeValue(uint32_t id) const;
    bool IsOnlyStored(const Inst& load) const;
    Result<Pointer> NewLargePlace(const Inst& inst, const Type& type);
    void FreeLargePlaces(const Frame& frame);
    Status DefineLarge(const Inst& inst, Pointer place);
    Status LoadLarge(const Inst& inst, const Pointer& from);
    Status StoreValue(const Inst& inst, const Pointer& to, uint32_t id);
    Status CopyLarge(const Inst& inst, const Pointer& to, const Pointer& from);
    Status CopyPlace(const Inst& inst, const Pointer& to, const Pointer& from);
    Pointer PartOf(const Pointer& whole, const Type& type, uint32_t index);
    Pointer ElementOf(const Pointer& whole, const Type& type, ir::ValueId index);
    Result<Pointer> PartAt(const Inst& inst, Pointer part, std::span<const uint32_t> indices);
    template <typename Body>
    void ForEach(uint32_t count, Body&& body);
    Status ExtractLarge(const Inst& inst, const Pointer& whole);
    Status ConstructLarge(const Inst& inst, const Type& type);
    Status InsertLarge(const Inst& inst, const Pointer& whole);

    // --- atomics.cpp ---
    Status Atomic(const Inst& inst);
    Status TexelPointer(const Inst& inst);
    Status GuardedAtomic(const Inst& inst, Handler handler);

    // --- composites.cpp ---
    Status CompositeConstruct(const Inst& inst);
    Status CompositeExtract(const Inst& inst);
    Status CompositeInsert(const Inst& inst);
    Status VectorShuffle(const Inst& inst);
    Status VectorExtractDynamic(const Inst& inst);
    Status VectorInsertDynamic(const Inst& inst);
    Status Transpose(const Inst& inst);
    Status MatrixTimes(const Inst& inst);
    Status OuterProduct(const Inst& inst);
    Status Dot(const Inst& inst);
    Result<std::pair<uint64_t, const Type*>> Locate(const Inst& inst,
                                                    const Type& type,
                                                    std::span<const uint32_t> indices);
    ir::ValueId DotOf(std::span<const ir::ValueId> a,
                      std::span<const ir::ValueId> b,
                      uint8_t flags);
    ir::ValueId SelectComponent(std::span<const ir::ValueId> components, ir::ValueId index);

    // --- cooperative_matrix.cpp ---
    Result<const Type*> MatrixType(const Inst& inst, uint32_t type_id);
    struct MatrixPlace;
    Status CheckPlace(const Inst& inst, const Type& matrix, size_t first, MatrixPlace& at);
    template <typename Visit>
    Status VisitMatrix(const Type& matrix, const MatrixPlace& at, Visit&& visit);
    ir::ValueId RowBytes(const MatrixPlace& at);
    Tuple LoadWholeMatrix(const Type& matrix, const MatrixPlace& at);
    Tuple TransposeMatrix(const Tuple& tuple);
    Status MatrixLoad(const Inst& inst);
    Status MatrixStore(const Inst& inst);
    Status MatrixMulAdd(const Inst& inst);
    Status MatrixLength(const Inst& inst);

    // --- subgroups.cpp ---
    static bool IsSubgroupOp(spv::Op op);
    Status Subgroup(const Inst& inst);
    Status SubgroupArithmetic(const Inst& inst);
    Status DefineShuffle(const Inst& inst, Tuple values, ir::ValueId lane);
    // Sets of lanes are integers of 32 or 64 bits, for SPIR-V vectors of four words.
    ir::Type LaneSetType() const;
    ir::ValueId SubgroupLane();
    ir::ValueId AllLanes();
    ir::ValueId LanesWhere(ir::ValueId condition);
    ir::ValueId LanesAround(spv::BuiltIn which);
    ir::ValueId ClusterLanes(uint32_t cluster);
    Result<ir::ValueId> GroupLanes(const Inst& inst, uint32_t operation, uint32_t extra);
    Result<uint32_t> ClusterSize(const Inst& inst, uint32_t id);
    Tuple LaneSetToVector(ir::ValueId set);
    Result<ir::ValueId> UseLaneSet(const Inst& inst, uint32_t id);
    ir::ValueId LaneSetNumber(ir::Op op, ir::ValueId set);
    ir::ValueId HasLane(ir::ValueId set, ir::ValueId lane);
    ir::ValueId IsEmpty(ir::ValueId set);
    ir::ValueId BoolNot(ir::ValueId value);

    // --- derivatives.cpp ---
    enum class DerivativeGroup : uint8_t { kNone, kQuads, kLinear };
    Status SetDerivativeGroup(const Inst& inst, DerivativeGroup group);
    Status ArrangeWorkgroup(const Inst& entry_point);
    Tuple LocalInvocationId();
    ir::ValueId LocalInvocationIndex();
    ir::ValueId Difference(ir::ValueId value, bool along_y, bool coarse);
    Status NeedsDerivatives(const Inst& inst) const;
    Status Derivative(const Inst& inst);

    // --- extensions.cpp ---
    Status Expect(const Inst& inst);
    Status ReadClock(const Inst& inst);
    Status Fma(const Inst& inst);
    Status CompositeReplicate(const Inst& inst);
    Status FragmentOnly(const Inst& inst);
    ir::ValueId FromBFloat16(ir::ValueId bits);  // i16 to f32
    ir::ValueId ToBFloat16(ir::ValueId value);   // f32 to i16

    // --- arithmetic.cpp ---
    Status Componentwise(const Inst& inst);
    Status Convert(const Inst& inst);
    Status Bitcast(const Inst& inst);
    Status Select(const Inst& inst);
    Status AnyAll(const Inst& inst);
    Status TwoResults(const Inst& inst);
    Status VectorTimesScalar(const Inst& inst);
    Status Shift(const Inst& inst);
    Status BitField(const Inst& inst);

    // --- dot_product.cpp ---
    Status IntegerDot(const Inst& inst);
    Status MixedFloatDot(const Inst& inst);
    ir::ValueId WordOfHalves(const Tuple& halves);
    ir::ValueId AddSaturating(ir::ValueId a, ir::ValueId b, bool is_signed);

    // --- execution_modes.cpp ---
    Status ReadExecutionModes(const Inst& entry_point);
    Status ReadFloatModes(const Inst& entry_point);
    Status FloatControl(const Inst& inst);
    uint8_t FloatFlags(uint32_t id) const;
    bool KeepsZeroSigns(uint32_t id, ir::Type scalar) const;
    static bool HasFloatModes(spv::Op op);

    // --- debug_printf.cpp ---
    bool IsDebugPrintf(const Inst& inst) const;
    Status DebugPrintf(const Inst& inst);
    Status PrintfValue(const Inst& inst, uint32_t id, std::string& letters, Tuple& words);

    // --- glsl_std_450.cpp ---
    Status ExtInst(const Inst& inst);
    Status GlslInst(const Inst& inst, uint32_t number);
    ir::ValueId LdexpExponent(ir::ValueId exponent);
    Status GlslPack(const Inst& inst, uint32_t number, const Tuple& a);
    Status GlslMatrix(const Inst& inst, uint32_t number, const Tuple& a);
    Result<Tuple> GlslGeometry(const Inst& inst,
                               uint32_t number,
                               const std::vector<Tuple>& args,
                               ir::Type type);
    ir::ValueId Clamp(ir::ValueId x,
                      ir::ValueId low,
                      ir::ValueId high,
                      ir::Op max,
                      ir::Op min,
                      ir::Type type,
                      bool zero_signs = false);

    // --- images.cpp ---
    Result<Image> UseImage(const Inst& inst, uint32_t id);
    Result<Image> UseImageAt(const Inst& inst, Pointer pointer);
    Status SampledImage(const Inst& inst);
    Status ImageOf(const Inst& inst);
    Status ImageRead(const Inst& inst);
    Status ImageWrite(const Inst& inst);
    Status ImageQuery(const Inst& inst);
    Result<ImageOperands> ReadImageOperands(const Inst& inst, size_t at);
    Result<Tuple> TexelCoordinates(const Inst& inst, const Image& image, uint32_t id);
    ImageCode::Texel TexelPlace(const Image& image,
                                const Tuple& coordinates,
                                ir::ValueId level,
                                ir::ValueId sample,
                                ir::ValueId& inside);
    Result<ir::ValueId> SampleNumber(const Inst& inst, const Image& image, ir::ValueId sample);
    hal::TexelLayout KnownLayout(const Image& image) const;
    Tuple TexelScales(const Image& image);
    Status DefineTexel(const Inst& inst, const Image& image, const Tuple& components);

    // --- sampled_images.cpp ---
    static Handler FindImageHandler(spv::Op op);
    Status ImageSample(const Inst& inst);
    Status ImageGather(const Inst& inst);
    Status ImageQueryLod(const Inst& inst);
    Status ImplicitGradients(const Inst& inst, size_t axes, ImageSampling::Inputs& inputs);
    Result<SampledPlace> UseSampledImage(const Inst& inst, const Image& image);
    Result<Tuple> SamplePosition(const Inst& inst, const Image& image, bool projected);
    Status SampleOffsets(const Inst& inst, ImageOperands& operands);

    // Shorthand for emission.
    ir::ValueId Emit(ir::Op op,
                     ir::Type type,
                     std::initializer_list<ir::ValueId> operands,
                     uint8_t flags = 0,
                     uint64_t imm = 0) {
        return EmitSpan(op, type, {operands.begin(), operands.size()}, flags, imm);
    }
    ir::ValueId EmitSpan(ir::Op op,
                         ir::Type type,
                         std::span<const ir::ValueId> operands,
                         uint8_t flags = 0,
                         uint64_t imm = 0);
    ir::ValueId Int(uint32_t value) { return builder_.ConstI32(value); }
    ir::ValueId Float(ir::Type type, double value);
    ir::ValueId ToI32(ir::ValueId value, bool is_signed);

    const Module& module_;
    const TypeTable& types_;
    const ConstantTable& constants_;
    const CompileRequest& request_;
    ir::Kernel kernel_;
    ir::Builder builder_;
    FloatModes modes_;
    std::array<uint32_t, 3> workgroup_size_ = {1, 1, 1};  // as the shader sees it
    DerivativeGroup derivative_group_ = DerivativeGroup::kNone;
    bool sees_quads_ = false;
    bool sees_subgroups_ = false;  // beyond quads: how many lanes there are, and who they are
    bool in_modes_ = false;        // the instruction that is translated is one that they are for
    Frame* frame_ = nullptr;
    std::unordered_map<uint32_t, Value> globals_;
    std::optional<uint32_t> heap_bounds_;  // the binding of them, once they are used
    std::vector<LocalVariable> variables_;
    std::unordered_map<uint32_t, std::vector<Pointer>> free_places_;  // by type
    std::vector<Jump> jumps_;
    std::vector<ir::BlockId> outer_;  // by IR block: the block around it
    std::vector<uint32_t> call_stack_;
    // Stores of values to their homes, by the IR block that makes the value.
    struct HomeStore {
        ir::ValueId value;
        uint32_t local = 0;
    };
    std::map<uint32_t, std::vector<HomeStore>> home_stores_;
    std::map<ir::Type, uint32_t> fast_math_defaults_;  // FPFastMathDefault
    uint64_t spent_scalars_ = 0;
    std::optional<uint64_t> aliased_workgroup_start_;
    // Once they are asked for: by an element's type, the strides of WorkgroupStride.
    std::optional<std::unordered_map<uint32_t, uint64_t>> workgroup_strides_;
    uint32_t walked_blocks_ = 0;
    uint64_t repeated_instructions_ = 0;
    uint32_t nesting_ = 0;
    uint32_t no_value_ = 0;
};

// Whether the entry point has the execution mode Shader64BitIndexingEXT.
bool AsksForWideIndexing(const Module& module, const Inst& entry_point);

// The IR and the result of one instruction on constants.
Result<std::pair<ir::Kernel, Tuple>> TranslateConstantOp(const Module& module,
                                                         const TypeTable& types,
                                                         const ConstantTable& constants,
                                                         const CompileRequest& request,
                                                         const Inst& inst);

}  // namespace fornax::kernel::spirv
