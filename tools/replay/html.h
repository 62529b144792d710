// A page as one HTML file that needs nothing beside it and asks nothing of a network.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace fornax::tool {

struct HtmlParts {
    std::string title;
    std::string stamp;
    std::string_view body;
    std::string_view script;
};

// The script finds the data as JSON in the element `data`.
std::string HtmlOf(const HtmlParts& parts, const nlohmann::json& data);

}  // namespace fornax::tool
