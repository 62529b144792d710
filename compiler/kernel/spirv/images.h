// Images and texel buffers: reading and writing texels, queries.
#pragma once

#include "compiler/kernel/spirv/heaps.h"
#include "compiler/kernel/spirv/image_code.h"
#include "compiler/kernel/spirv/place_access.h"
#include "compiler/kernel/spirv/values.h"

namespace fornax::kernel::spirv {

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

class Images : TranslationPart {
  public:
    Images(Translation& code, Heaps& heaps, PlaceAccess& access, Values& values)
        : TranslationPart(code), heaps_(heaps), access_(access), values_(values) {}

    Status ImageRead(const Inst& inst);
    Status ImageWrite(const Inst& inst);
    Status ImageQuery(const Inst& inst);
    Result<Image> UseImage(const Inst& inst, uint32_t id);
    Result<Image> UseImageAt(const Inst& inst, Pointer pointer);
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

  private:
    Heaps& heaps_;
    PlaceAccess& access_;
    Values& values_;
};

}  // namespace fornax::kernel::spirv
