// An operation as a string that is equal exactly for equal operations: for tables and hashes.
#pragma once

#include <string>

#include "compiler/graph/ir/operation.h"

namespace fornax::graph {

std::string OperationKey(const Operation& operation);

}  // namespace fornax::graph
