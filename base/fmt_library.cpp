// The functions of the library fmt, compiled once.
//
// The distribution ships fmt as headers and as a shared library whose name changes with each
// version. Header-only use compiles these functions again in every file that formats a message,
// which then takes four times as long; so this file instantiates what the headers only declare.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {

template FMT_API auto dragonbox::to_decimal(float x) noexcept -> dragonbox::decimal_fp<float>;
template FMT_API auto dragonbox::to_decimal(double x) noexcept -> dragonbox::decimal_fp<double>;

template FMT_API locale_ref::locale_ref(const std::locale& loc);
template FMT_API auto locale_ref::get<std::locale>() const -> std::locale;

template FMT_API auto thousands_sep_impl(locale_ref) -> thousands_sep_result<char>;
template FMT_API auto decimal_point_impl(locale_ref) -> char;

template FMT_API void buffer<char>::append(const char*, const char*);

template FMT_API void vformat_to(buffer<char>&,
                                 string_view,
#if FMT_VERSION < 100000
                                 basic_format_args<FMT_BUFFER_CONTEXT(char)>,
#else
                                 vformat_args<>::type,
#endif
                                 locale_ref);

}  // namespace detail
FMT_END_NAMESPACE
