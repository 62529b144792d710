#include "tools/replay/html.h"

#include <fmt/format.h>

#include "base/printable.h"
#include "tools/replay/page_files.h"

namespace fornax::tool {
namespace {

std::string Escaped(std::string_view text) {
    std::string made;
    for (const char c : Printable(text)) {
        switch (c) {
            case '<':
                made += "&lt;";
                break;
            case '>':
                made += "&gt;";
                break;
            case '&':
                made += "&amp;";
                break;
            default:
                made += c;
        }
    }
    return made;
}

// JSON that may stand in a script: no text in it ends that, or begins a comment.
std::string InScript(const nlohmann::json& data) {
    std::string made;
    for (const char c : data.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace)) {
        if (c == '<') {
            made += "\\u003c";
        } else {
            made += c;
        }
    }
    return made;
}

}  // namespace

std::string HtmlOf(const HtmlParts& parts, const nlohmann::json& data) {
    std::string page = fmt::format(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
        "'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n"
        "<title>{0}, {1}</title>\n<style>\n{2}</style></head>\n<body>\n"
        "<h1>{0}</h1>\n<p class=\"stamp\">{1}</p>\n{3}\n",
        Escaped(parts.title), Escaped(parts.stamp), PageStyle(), parts.body);
    if (!ChartLibrary().empty()) {
        page += "<script>\n";
        page += ChartLibrary();
        page += "\n</script>\n";
    }
    page += "<script id=\"data\" type=\"application/json\">";
    page += InScript(data);
    page += "</script>\n<script>\n";
    page += CommonScript();
    page += parts.script;
    page += "</script>\n</body></html>\n";
    return page;
}

}  // namespace fornax::tool
