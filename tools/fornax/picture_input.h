// A picture as the tensor that an input of a network takes.
#pragma once

#include <string>

#include "base/result.h"
#include "tools/fornax/network_inputs.h"
#include "tools/tensors/picture.h"

namespace fornax::tool {

struct PictureTensor {
    graph::Tensor tensor;
    std::string description;  // ", 640x480, stretched to 224x224, RGB, NCHW, ..."
};

// What the options leave open follows from the input's shape: the size, the layout by where 1 or 3
// channels are, and grey by the number of channels. The error is a sentence.
Result<PictureTensor> MakePictureTensor(const NetworkInput& input,
                                        const tensors::Picture& picture,
                                        const PictureInputOptions& options);

}  // namespace fornax::tool
