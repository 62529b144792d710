// Images with samplers: instructions that sample.
#pragma once

#include "compiler/kernel/spirv/derivatives.h"
#include "compiler/kernel/spirv/image_sampling.h"
#include "compiler/kernel/spirv/images.h"
#include "compiler/kernel/spirv/place_access.h"
#include "compiler/kernel/spirv/values.h"

namespace fornax::kernel::spirv {

class SampledImages : TranslationPart {
  public:
    SampledImages(Translation& code,
                  PlaceAccess& access,
                  Values& values,
                  Derivatives& derivatives,
                  Images& images)
        : TranslationPart(code),
          access_(access),
          values_(values),
          derivatives_(derivatives),
          images_(images) {}

    Status SampledImage(const Inst& inst);
    Status ImageOf(const Inst& inst);
    Status ImageSample(const Inst& inst);
    Status ImageGather(const Inst& inst);
    Status ImageQueryLod(const Inst& inst);

  private:
    Status ImplicitGradients(const Inst& inst, size_t axes, ImageSampling::Inputs& inputs);
    Result<SampledPlace> UseSampledImage(const Inst& inst, const Image& image);
    Result<Tuple> SamplePosition(const Inst& inst, const Image& image, bool projected);
    Status SampleOffsets(const Inst& inst, ImageOperands& operands);

    PlaceAccess& access_;
    Values& values_;
    Derivatives& derivatives_;
    Images& images_;
};

}  // namespace fornax::kernel::spirv
