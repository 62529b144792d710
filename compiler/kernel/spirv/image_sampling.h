// Sampling: kernel IR for "Image Sample Operations" of the Vulkan specification, with the sampler's
// state read from its descriptor when the kernel runs.
//
// A sample is a loop over the levels that contribute (one or two) around a loop over the texels
// that a filter needs (one, two, four or eight), so that the code holds a single fetch. The numbers
// of iterations are the same for all lanes: a lane whose filter is nearest, where that of others is
// linear, gives the other texels no weight.
#pragma once

#include <array>
#include <span>

#include "compiler/kernel/spirv/grammar.h"
#include "compiler/kernel/spirv/image_code.h"

namespace fornax::kernel::spirv {

// A sampled image and its sampler.
struct SampledPlace {
    ImageCode::Descriptor image;
    ImageCode::Descriptor sampler;
    ImageCode::Id buffer;
    ImageCode::Id format;
    ImageCode::Ids scales;
    spv::Dim dim = spv::Dim::Dim2D;
    bool arrayed = false;
    bool integer = false;
};

class ImageSampling {
  public:
    using Id = ImageCode::Id;
    using Ids = ImageCode::Ids;

    // Invalid or empty where an instruction does not have them. Floats but for the offsets.
    struct Inputs {
        Ids coordinates;  // with the layer last
        Id reference;     // of a depth comparison
        Id lod;
        Id bias;
        Ids grad_x;
        Ids grad_y;
        Id min_lod;
        Ids offset;   // texels
        Ids offsets;  // four pairs, of a gather
    };

    ImageSampling(ImageCode& code, const SampledPlace& place);

    // Four components; with a reference, the comparison's result in the first.
    Ids Sample(const Inputs& inputs);
    // One component of four texels, or their comparisons.
    Ids Gather(const Inputs& inputs, uint32_t component);
    // The level that Sample would take, and the level of detail before it is clamped.
    Ids QueryLod(const Inputs& inputs);

  private:
    // A level as lanes choose it.
    struct Level {
        Ids extent;  // i32, of each axis
        Id offset;
        Id row_pitch;
        Id slice_pitch;
    };
    // The tap of a cube's filter that is on no face, and what each of the others has of its weight.
    struct Corner {
        Id tap;  // i32; no tap's number where there is none
        Id share;
    };
    // Where the texels of a filter lie on an axis.
    struct Axis {
        Id first;  // i32
        Id first_weight;
        Id second_weight;
    };

    bool IsCompressed() const;
    bool MayHitBorder(size_t axis) const;
    bool MayHitBorder() const;
    bool IsFinite() const;
    bool HasSteps() const;
    Id Flag(uint32_t bit);
    void FindPosition(const Inputs& inputs);
    void SelectFace(const Ids& direction, const Ids* gradient_x, const Ids* gradient_y);
    Id LevelOfDetail(const Inputs& inputs);
    Id Clamped(Id lod, const Inputs& inputs);
    // "Image Level(s) Selection": of a linear filter between levels, and of the nearest level.
    struct LevelPosition {
        Id levels;  // i32
        Id last;
        Id between;
        Id nearest;
    };
    LevelPosition FindLevel(Id lod);
    Id Block(Id texels, bool count);
    Level MakeLevel(Id index);
    Axis MakeAxis(const Level& level, size_t axis, Id linear, const Ids& offset);
    Id Wrapped(Id index, Id extent, size_t axis, Id linear);
    Corner FindCorner(const Level& level,
                      std::span<const Axis> axes,
                      std::span<const std::array<Id, 2>> wrapped);
    // Moves texels beyond the edges of a cube's face to the face that they are on.
    void CrossEdges(Id& x, Id& y, Id& face, Id extent);
    // The texel's components, as floats or integers; of a comparison, only the first counts.
    Ids Fetch(const Level& level, const Ids& texel, const Inputs& inputs);
    Ids Compared(Ids values, const Inputs& inputs);

    // --- image_filters.cpp ---
    // One of a filter's texels in a level.
    struct Tap {
        Id number;  // i32; bit i says which of two it is on axis i
        std::span<const Axis> axes;
        Corner corner;
        Id level_weight;
        Id is_finer;  // whether it is in the first level
    };
    Ids FirstState();
    Ids Reduced(const Ids& state, const Ids& values, const Tap& tap);
    Ids Blended(const Ids& state, Id weight, Id is_finer);
    Ids ResultOf(const Ids& state);
    Id IsSecond(Id tap, uint32_t axis);
    Id WeightOf(const Tap& tap);
    Id Complement(Id weight) { return code_.F(ir::Op::kFSub, code_.Float(1), weight); }
    Id Between(Id first, Id second, Id first_weight, Id second_weight);
    Ids Averaged(const Ids& state, const Ids& values, const Tap& tap);
    Ids AveragedOnCube(const Ids& state, const Ids& values, const Tap& tap);
    template <typename Body>
    Ids ByReduction(const Ids& state, Body&& body);

    ImageCode& code_;
    const SampledPlace& place_;
    bool exists_;  // whether it is known that there are texels
    size_t axes_;  // of a face for cubes
    bool cube_;
    Id flags_;
    Ids scales_;        // of the texels; those of `place_`, or invalid for numbers of steps
    Id block_log2_;     // invalid where no format is compressed
    Ids position_;      // of each axis, as the application gives it
    Ids gradients_[2];  // of each axis
    Id slice_;          // layer, or face with layer; invalid for none
    Id face_;           // of a cube, without layer
};

}  // namespace fornax::kernel::spirv
