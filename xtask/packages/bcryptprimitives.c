/* The function of Windows 10's bcryptprimitives.dll that Rust's library calls, for the wine of Debian 12. */
#include <windows.h>
#include <ntsecapi.h>

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size)
{
    return RtlGenRandom(data, (ULONG)size);
}
